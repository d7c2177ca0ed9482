"""ASSERT TOPIC and ASSERT SCHEMA: wait until a topic or a schema is there (or gone).

Source: docs/sql/managing.md#assert.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.control.statements import entities as e
from ksql.control.statements.services import ConditionPending, Handlers, Request
from ksql.core import AssertionFailed, RegistryMissing, StatementError
from ksql.formats import SchemaNotFound
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.core import Span
    from ksql.formats import Registry

_TOPIC_TIMEOUT = "ksql.assert.topic.default.timeout.ms"
_SCHEMA_TIMEOUT = "ksql.assert.schema.default.timeout.ms"
_LONGEST = "ksql.assert.timeout.max.ms"


class WaitsTooLong(StatementError):
    """An ASSERT whose TIMEOUT is longer than the server lets a statement wait."""

    def __init__(self, asked_ms: int, longest_ms: int, span: Span) -> None:
        super().__init__(
            f"a TIMEOUT of {asked_ms} ms is longer than a statement may wait",
            detail=f"{_LONGEST} is {longest_ms}.",
            hint="Name a shorter TIMEOUT and send the statement again, or raise the property.",
            span=span,
        )


def assert_topic(stmt: ast.AssertTopic, request: Request) -> e.Entity:
    """Answer if the assertion holds.

    Raises: ConditionPending, of AssertionFailed, if not; WaitsTooLong.
    """
    patience_ms = _patience_ms(stmt, _TOPIC_TIMEOUT, request)
    _hold(_problem(stmt, request), patience_ms)
    return e.AssertTopic(statement_text=request.text, topic_name=stmt.topic, exists=stmt.exists)


def assert_schema(stmt: ast.AssertSchema, request: Request) -> e.Entity:
    """Answer if the assertion holds; with both a subject and an id, the subject must have it.

    Raises: ConditionPending, of AssertionFailed, if not; WaitsTooLong, RegistryMissing,
        RegistryUnreachable.
    """
    if stmt.subject is None and stmt.schema_id is None:
        raise StatementError("ASSERT SCHEMA needs a SUBJECT, an ID or both", span=stmt.span)
    registry = request.engine.registry
    if registry is None:
        raise RegistryMissing(
            "ASSERT SCHEMA needs a schema registry", hint="Set ksql.schema.registry.url."
        )
    patience_ms = _patience_ms(stmt, _SCHEMA_TIMEOUT, request)
    _hold(_schema_problem(stmt, registry), patience_ms)
    return e.AssertSchema(
        statement_text=request.text, subject=stmt.subject, id=stmt.schema_id, exists=stmt.exists
    )


def _patience_ms(stmt: ast.AssertTopic | ast.AssertSchema, setting: str, request: Request) -> int:
    longest_ms = request.settings.number(_LONGEST)
    if stmt.timeout is None:
        return min(request.settings.number(setting), longest_ms)
    if stmt.timeout.ms > longest_ms:
        raise WaitsTooLong(stmt.timeout.ms, longest_ms, stmt.span)
    return stmt.timeout.ms


def _hold(problem: str | None, patience_ms: int) -> None:
    if problem is not None:
        raise ConditionPending(AssertionFailed(problem), patience_ms)


def _schema_problem(stmt: ast.AssertSchema, registry: Registry) -> str | None:
    if _has_schema(stmt, registry) == stmt.exists:
        return None
    subject = f" subject name {stmt.subject}" if stmt.subject is not None else ""
    id_ = f" id {stmt.schema_id}" if stmt.schema_id is not None else ""
    return f"Schema with{subject}{id_} {'does not exist' if stmt.exists else 'exists'}"


def _has_schema(stmt: ast.AssertSchema, registry: Registry) -> bool:
    if stmt.subject is not None:
        known = registry.ids(stmt.subject)
        return bool(known) if stmt.schema_id is None else stmt.schema_id in known
    try:
        registry.by_id(stmt.schema_id or 0)
    except SchemaNotFound:
        return False
    return True


def _problem(stmt: ast.AssertTopic, request: Request) -> str | None:
    topic = request.services.monitor.topics().get(stmt.topic)
    if not stmt.exists:
        return None if topic is None else f"Topic {stmt.topic} exists"
    if topic is None:
        return f"Topic {stmt.topic} does not exist"
    actual = {"PARTITIONS": len(topic), "REPLICAS": topic[0] if topic else 0}
    wrong = [_mismatch(stmt.topic, prop, actual) for prop in stmt.properties]
    return "\n".join(filter(None, wrong)) or None


def _mismatch(topic: str, prop: ast.Property, actual: Mapping[str, int]) -> str:
    number = actual.get(prop.name.upper())
    if number is None:
        return f"Cannot assert unknown topic property: {prop.name}"
    if not isinstance(prop.value, ex.IntLit):
        raise StatementError(f"{prop.name} must be a whole number", span=prop.span)
    if number == prop.value.value:
        return ""
    return (
        f"Mismatched configuration for topic {topic}: For config {prop.name}, "
        f"expected {prop.value.value} got {number}"
    )


HANDLERS: Handlers = {
    ast.AssertTopic: assert_topic,
    ast.AssertSchema: assert_schema,
}
