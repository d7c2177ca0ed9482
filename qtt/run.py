"""Runs a case on a driver and judges it; reads SQL files as blocks of statements and assertions.

Source: qtt/README.md#an-sql-file.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ksql.control.planning import With, columns_of
from ksql.control.statements import check_count
from ksql.core import KsqlError, NotSupportedYet, ParseError, QueryFailed, Settings, StatementError
from ksql.core.types import BIGINT, ROWTIME, WindowedKeys
from ksql.exec.expressions import constant_value
from ksql.formats import NoRegistry, key_schema_name, topic_serde
from ksql.sql.syntax import Parsed, RawStatement, ast, parse_one, printer, split
from ksql.sql.syntax import expr as ex
from qtt import topics, wire
from qtt.compare import check_topic
from qtt.driver import FUNCTIONS, Driver, Drivers
from qtt.model import (
    CaseRecord,
    ExpectedException,
    Mismatch,
    QueryTestCase,
    Result,
    Step,
    Unsupported,
)
from qtt.post import check_post

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.control.planning import FormatClause
    from ksql.core.types import Format
    from ksql.sql.catalog import DataSource


BASE = {
    "auto.offset.reset": "earliest",
    "cache.max.bytes.buffering": "0",
    "ksql.headers.columns.enabled": "true",
}
_CLASSES = {
    "ParseFailedException": ParseError,
    "KsqlStatementException": KsqlError,
    "KsqlException": KsqlError,
    "StreamsException": QueryFailed,
    "AssertionError": Mismatch,
}


def run(case: QueryTestCase, drivers: Drivers) -> Result:
    """Run one case; never raises for what the case does."""
    began = time.monotonic()
    driver: Driver | None = None
    more: tuple[str, ...] = ()
    try:
        if case.rest is not None:
            drivers.serve(case)
            return Result(case.id, "passed", time.monotonic() - began)
        driver = drivers.fresh(case.id)
        if case.sql_block is not None:
            run_block(case, driver)
        else:
            _run(case, driver, drivers.default_partitions)
        status, reason = "passed", ""
    except Unsupported as problem:
        status, reason = "unsupported", str(problem)
    except (NotSupportedYet, NoRegistry) as problem:
        status, reason = "unsupported", problem.message
    except Mismatch as problem:
        status, reason, more = "failed", str(problem), problem.more
    except KsqlError as error:
        status, reason = "failed", f"{type(error).__name__}: {error.text()}"
    except Exception as error:  # noqa: BLE001 - a defect is a failed case, not the end of the run
        status, reason = "failed", f"defect: {type(error).__name__}: {error}"
    finally:
        if driver is not None:
            driver.close()
    return Result(case.id, status, time.monotonic() - began, reason, more)  # type: ignore[arg-type]


def _run(case: QueryTestCase, driver: Driver, partitions: int) -> None:
    if case.expected is None:
        _play(case, driver, partitions)
        _check_outputs(case, driver)
        check_post(case, driver, partitions)
        return
    try:
        _play(case, driver, partitions)
    except (NotSupportedYet, NoRegistry):
        raise
    except KsqlError as error:
        check_exception(case.expected, error)
        return
    raise Mismatch(f"expected {case.expected}, nothing was thrown")


def check_exception(expected: ExpectedException, error: Exception) -> None:
    """Whether an error is the one that was announced.

    Raises: Mismatch.
    """
    texts = _texts(error)
    error_class = _CLASSES.get(expected.type or "", KsqlError)
    if not isinstance(error, error_class):
        raise Mismatch(f"expected a {expected.type}, got {type(error).__name__}: {texts[0]}")
    for part in (expected.message, expected.cause):
        if part is not None and not any(part in text for text in texts):
            raise Mismatch(f"expected the message\n{part}\ngot\n{texts[0]}")


def _texts(error: Exception) -> list[str]:
    """Return what ksqlDB may say of an error: with our hint, and without.

    The statement comes right after the message, so with the hint between them it is never found.
    """
    if not isinstance(error, KsqlError):
        return [str(error)]
    plain = error.text().removesuffix(f"\n{error.hint}") if error.hint else error.text()
    shown = [error.statement] if isinstance(error, StatementError) and error.statement else []
    shown += getattr(error, "__notes__", [])
    ends = [f"\nStatement: {statement}" for statement in shown] or [""]
    return [text + end for text in (error.text(), plain) for end in ends]


# --- playing the steps


def _play(case: QueryTestCase, driver: Driver, partitions: int) -> None:
    settings = Settings().with_overrides(BASE) if not case.properties else _settings(case)
    topics.prepare(case, driver, settings, partitions)
    for step in case.steps:
        settings = _statements(step, driver, settings)
        driver.feed([wire.raw(record, driver) for record in step.inputs])


def _settings(case: QueryTestCase) -> Settings:
    """The case's overrides; its session may set what a server's configuration may."""
    return Settings(
        {}, {**BASE, **{k.removeprefix("ksql.streams."): v for k, v in case.properties.items()}}
    )


def _statements(step: Step, driver: Driver, settings: Settings) -> Settings:
    raws = split("\n".join(s.sql for s in step.statements))
    marks = _marks(step, len(raws))
    for raw, refused in zip(raws, marks, strict=True):
        if refused is not None:
            _expect_refusal(raw, driver, settings, refused)
            continue
        parsed = parse_one(raw, types=driver.catalog.types, variables={})
        settings = _execute(parsed, driver, settings)
    return settings


def _marks(step: Step, count: int) -> list[str | None]:
    """For each statement of the joined text, what its refusal must say."""
    if all(s.refused is None for s in step.statements):
        return [None] * count
    marks = [s.refused for s in step.statements for _ in split(s.sql)]
    if len(marks) != count:
        raise Mismatch("next to a refused statement each text must be whole statements")
    return marks


def _execute(parsed: Parsed, driver: Driver, settings: Settings) -> Settings:
    match parsed.statement:
        case ast.SetProperty(name, value):
            return Settings({}, {**settings.overrides, name.removeprefix("ksql.streams."): value})
        case ast.UnsetProperty(name):
            return settings.without(name)
        case statement:
            try:
                driver.execute(statement, parsed.text, settings)
            except StatementError as error:
                error.statement = error.statement or parsed.text
                error.add_note(_completed(statement))
                raise
            return settings


def _completed(statement: ast.Statement) -> str:
    """Return a statement as ksqlDB prints it once it has filled in the default format of keys."""
    if isinstance(statement, ast.CreateSource):
        given = {property_.name.upper(): property_ for property_ in statement.properties}
        if not given.keys() & {"KEY_FORMAT", "FORMAT"}:
            given["KEY_FORMAT"] = ast.Property("KEY_FORMAT", ex.StringLit("KAFKA"))
        statement = replace(statement, properties=tuple(given[name] for name in sorted(given)))
    return f"{printer.statement(statement)};"


def _expect_refusal(raw: RawStatement, driver: Driver, settings: Settings, part: str) -> None:
    """Expect the statement to fail with that message, and to change nothing."""
    before = driver.catalog
    try:
        parsed = parse_one(raw, types=before.types, variables={})
        driver.execute(parsed.statement, parsed.text, settings)
    except (NotSupportedYet, NoRegistry):
        raise
    except KsqlError as error:
        if part not in error.text():
            raise Mismatch(f"refused, but without {part!r}: {error.text()}") from error
    else:
        raise Mismatch(f"was to be refused: {raw.text}")
    if driver.catalog != before:
        raise Mismatch(f"refused, but the catalog has changed: {raw.text}")


def _check_outputs(case: QueryTestCase, driver: Driver) -> None:
    by_topic: dict[str, list[CaseRecord]] = {}
    for record in case.outputs:
        by_topic.setdefault(record.topic, []).append(record)
    problems: list[str] = []
    for topic, expected in by_topic.items():
        source, actual = wire.source_of(topic, driver), driver.records(topic)
        try:
            check_topic(case, source, expected, actual, driver.registry)
        except Mismatch as problem:
            problems += [str(problem), *problem.more]
    if problems:
        raise Mismatch(problems[0], *problems[1:])


def matches(case: QueryTestCase, pattern: str | None) -> bool:
    """Whether a filter lets the case through."""
    return pattern is None or re.search(pattern, case.id) is not None


def run_block(case: QueryTestCase, driver: Driver) -> None:
    """Run a block.

    Raises: Mismatch, Unsupported, KsqlError.
    """
    block = _Block(driver, case.scripts)
    try:
        block.play(case.sql_block or "")
    except (NotSupportedYet, NoRegistry, Unsupported):
        raise
    except (KsqlError, Mismatch) as error:
        if case.expected is None:
            raise
        check_exception(case.expected, error)
        return
    if case.expected is not None:
        raise Mismatch(f"expected {case.expected}, nothing was thrown")


class _Block:
    def __init__(self, driver: Driver, scripts: Path | None) -> None:
        self._driver = driver
        self._scripts = scripts
        self._settings = Settings({}, BASE)
        self._cursors: dict[str, int] = {}

    def play(self, text: str) -> None:
        for raw in split(text):
            parsed = parse_one(
                raw, types=self._driver.catalog.types, variables={}, test_statements=True
            )
            try:
                self._statement(parsed)
            except Mismatch as error:
                raise Mismatch(str(error), *error.more, f"in {raw.text}") from error

    def _statement(self, parsed: Parsed) -> None:
        match parsed.statement:
            case ast.AssertValues() as stmt:
                self._assert_values(stmt)
            case ast.AssertNullValues() as stmt:
                self._assert_tombstone(stmt)
            case ast.AssertSource() as stmt:
                self._assert_source(stmt)
            case ast.RunScript(path):
                self.play(self._script(path))
            case ast.SetProperty(name, value):
                plain = name.removeprefix("ksql.streams.")
                self._settings = Settings({}, {**self._settings.overrides, plain: value})
            case ast.UnsetProperty(name):
                self._settings = self._settings.without(name)
            case ast.CreateSource() as stmt:
                self._create_topic(stmt)
                self._driver.execute(stmt, parsed.text, self._settings)
            case (ast.InsertValues() | ast.DeleteFrom()) as stmt:
                self._driver.execute(stmt, parsed.text, self._settings)
                self._driver.feed(())
            case stmt:
                self._driver.execute(stmt, parsed.text, self._settings)

    def _script(self, path: str) -> str:
        """A script of the corpus: its path starts at the file's folder or at one above it."""
        start = self._scripts
        for folder in () if start is None else (start, *start.parents):
            file = folder / path.lstrip("/")
            if file.is_file():
                return file.read_text()
        raise Mismatch(f"there is no script {path}")

    def _create_topic(self, stmt: ast.CreateSource) -> None:
        from ksql.sql.catalog import Topic  # noqa: PLC0415 - only here

        name = With(stmt.properties, ddl=True).topic
        if name:
            self._driver.create_topic(Topic(name, 1))

    def _source(self, name: str) -> DataSource:
        source = self._driver.catalog.sources.get(name)
        if source is None:
            raise StatementError(f"Source {name} does not exist")
        return source

    def _next(self, source: DataSource) -> Any:
        log = self._driver.records(source.topic)
        position = self._cursors.get(source.topic, 0)
        if position >= len(log):
            raise Mismatch(
                f"Expected another record, but all records have been read of {source.name}"
            )
        self._cursors[source.topic] = position + 1
        return log[position]

    def _assert_values(self, stmt: ast.AssertValues) -> None:
        check_count(stmt.columns, stmt.values)
        source = self._source(stmt.name)
        record = self._next(source)
        if record.value is None:
            raise Mismatch("Expected record does not match actual. It is a tombstone")
        schema = source.schema
        serde = topic_serde(
            source.value_format, schema.value, "value", source.topic, self._driver.registry
        )
        values = serde.decode(record.value) or ()
        actual = self._key(source, record.key) | dict(
            zip((c.name for c in schema.value), values, strict=False)
        )
        actual[ROWTIME] = record.timestamp
        types = {c.name: c.type for c in schema.columns} | {ROWTIME: BIGINT}
        for name, expr in zip(stmt.columns, stmt.values, strict=False):  # none: none is compared
            if name not in types:
                raise Mismatch(f"Column {name} does not exist in {source.name}")
            expected = constant_value(expr, types[name], FUNCTIONS, {}, name)
            if expected != actual.get(name):
                raise Mismatch(
                    f"Expected record does not match actual. {name}: {expected!r} expected, "
                    f"{actual.get(name)!r} found"
                )

    def _key(self, source: DataSource, data: bytes | None) -> dict[str, Any]:
        key = data
        if key is not None and source.window is not None:
            key, _ = WindowedKeys(source.window.size_ms).split(key)
        columns = source.schema.key
        serde = topic_serde(source.key_format, columns, "key", source.topic, self._driver.registry)
        values = serde.decode(key)
        return dict(zip((c.name for c in columns), values or (None,) * len(columns), strict=True))

    def _assert_tombstone(self, stmt: ast.AssertNullValues) -> None:
        source = self._source(stmt.name)
        names = stmt.columns or tuple(c.name for c in source.schema.key)
        check_count(names, stmt.values)
        record = self._next(source)
        if record.value is not None:
            raise Mismatch("Expected record does not match actual. It is not a tombstone")
        actual = self._key(source, record.key)
        types = {c.name: c.type for c in source.schema.key}
        for name, expr in zip(names, stmt.values, strict=True):
            if name not in types:
                raise Mismatch(f"{name} is no key column of {source.name}")
            if constant_value(expr, types[name], FUNCTIONS, {}, name) != actual.get(name):
                raise Mismatch("Expected record does not match actual: another key")

    def _assert_source(self, stmt: ast.AssertSource) -> None:
        source = self._source(stmt.name)
        options = With(stmt.properties, ddl=True)
        stamp = options.timestamp()
        checks = {
            "type": (stmt.kind, source.kind),
            "schema": (
                columns_of(stmt.columns),
                (*source.schema.key, *source.schema.value, *source.schema.headers),
            ),
            "kafka topic": (options.topic, source.topic),
            "key format": (
                options.clause("KEY").name or ("KAFKA" if source.schema.key else "NONE"),
                source.key_format.name,
            ),
            "value format": (options.clause("VALUE").name, source.value_format.name),
            "key format properties": (
                _stated(options.clause("KEY"), source.name),
                _properties(source.key_format),
            ),
            "value format properties": (
                _stated(options.clause("VALUE"), None),
                _properties(source.value_format),
            ),
            "value serde features": (options.wrap, source.value_format.wrap),
            "timestamp column": (
                stamp.name if stamp else None,
                source.timestamp.name if source.timestamp else None,
            ),
            "timestamp format": (
                options.text("TIMESTAMP_FORMAT"),
                source.timestamp.pattern if source.timestamp else None,
            ),
        }
        for what, (expected, actual) in checks.items():
            if expected != actual:
                raise StatementError(
                    f"Expected {what} does not match actual for source {source.name}. "
                    f"{expected} expected, {actual} found"
                )


def _stated(clause: FormatClause, key_of: str | None) -> tuple[object, ...]:
    """The properties of a format that a WITH clause gives it, that of a source's key or a value."""
    full_name = clause.schema_full_name
    if key_of is not None and clause.name is not None:
        full_name = full_name or key_schema_name(clause.name, key_of)
    return (
        clause.delimiter or ",",
        clause.schema_id,
        full_name,
        clause.nullable_representation,
    )


def _properties(format_: Format) -> tuple[object, ...]:
    return (
        format_.delimiter,
        format_.schema_id,
        format_.schema_full_name,
        format_.nullable_representation,
    )
