"""Runs a case on a driver and judges it."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.core.config import Settings
from ksql.core.errors import (
    KsqlError,
    NotSupportedYet,
    ParseError,
    QueryFailed,
    StatementError,
)
from ksql.formats.table import NoRegistry
from ksql.sql.syntax import ast, printer
from ksql.sql.syntax import expr as ex
from ksql.sql.syntax.parser import Parsed, RawStatement, parse_one, split
from qtt import sqlfile, topics, wire
from qtt.compare import check_topic
from qtt.model import Case, Expected, Mismatch, Record, Result, Step, Unsupported
from qtt.post import check_post

if TYPE_CHECKING:
    from qtt.driver import Driver, Drivers

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


def run(case: Case, drivers: Drivers) -> Result:
    """Run one case; never raises for what the case does."""
    began = time.monotonic()
    driver: Driver | None = None
    try:
        if case.rest is not None:
            drivers.serve(case)
            return Result(case.id, "passed", time.monotonic() - began)
        driver = drivers.fresh(case.id)
        if case.sql_block is not None:
            sqlfile.run_block(case, driver)
        else:
            _run(case, driver, drivers.default_partitions)
        status, reason = "passed", ""
    except Unsupported as problem:
        status, reason = "unsupported", str(problem)
    except (NotSupportedYet, NoRegistry) as problem:
        status, reason = "unsupported", problem.message
    except Mismatch as problem:
        status, reason = "failed", str(problem)
    except KsqlError as error:
        status, reason = "failed", f"{type(error).__name__}: {error.text()}"
    except Exception as error:  # noqa: BLE001 - a defect is a failed case, not the end of the run
        status, reason = "failed", f"defect: {type(error).__name__}: {error}"
    finally:
        if driver is not None:
            driver.close()
    return Result(case.id, status, time.monotonic() - began, reason)  # type: ignore[arg-type]


def _run(case: Case, driver: Driver, partitions: int) -> None:
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


def check_exception(expected: Expected, error: Exception) -> None:
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


def _play(case: Case, driver: Driver, partitions: int) -> None:
    settings = Settings().with_overrides(BASE) if not case.properties else _settings(case)
    topics.prepare(case, driver, settings, partitions)
    for step in case.steps:
        settings = _statements(step, driver, settings)
        driver.feed([wire.raw(record, driver) for record in step.inputs])


def _settings(case: Case) -> Settings:
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


def _check_outputs(case: Case, driver: Driver) -> None:
    by_topic: dict[str, list[Record]] = {}
    for record in case.outputs:
        by_topic.setdefault(record.topic, []).append(record)
    for topic, expected in by_topic.items():
        check_topic(
            case, wire.source_of(topic, driver), expected, driver.records(topic), driver.registry
        )


def matches(case: Case, pattern: str | None) -> bool:
    """Whether a filter lets the case through."""
    return pattern is None or re.search(pattern, case.id) is not None
