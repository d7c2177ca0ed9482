"""Blocks of SQL files: statements, inserts and assertions in turn.

Source: qtt/README.md#an-sql-file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ksql.base.config import Settings
from ksql.base.errors import KsqlError, NotSupportedYet, StatementError
from ksql.compile.constants import constant_value
from ksql.engine.columns import columns_of
from ksql.engine.properties import With
from ksql.formats.schemas import key_schema_name, topic_serde
from ksql.formats.table import NoRegistry
from ksql.statements.insert import check_count
from ksql.syntax import ast
from ksql.syntax.parser import Parsed, parse_one, split
from ksql.types.model import BIGINT
from ksql.types.schema import ROWTIME
from ksql.types.windowed import WindowedKeys
from qtt import run as runs
from qtt.extensions import FUNCTIONS
from qtt.model import Case, Mismatch, Unsupported

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.catalog.model import DataSource
    from ksql.engine.properties import FormatClause
    from ksql.types.format import Format
    from qtt.driver import Driver


def run_block(case: Case, driver: Driver) -> None:
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
        runs.check_exception(case.expected, error)
        return
    if case.expected is not None:
        raise Mismatch(f"expected {case.expected}, nothing was thrown")


class _Block:
    def __init__(self, driver: Driver, scripts: Path | None) -> None:
        self._driver = driver
        self._scripts = scripts
        self._settings = Settings({}, runs.BASE)
        self._cursors: dict[str, int] = {}

    def play(self, text: str) -> None:
        for raw in split(text):
            parsed = parse_one(
                raw, types=self._driver.catalog.types, variables={}, test_statements=True
            )
            self._statement(parsed)

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
            case ast.InsertValues() as stmt:
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
        from ksql.catalog.topic import Topic  # noqa: PLC0415 - only here

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
