"""ASSERT TOPIC: wait until a topic is there (or gone).

Source: reference, statements, section 16.9.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ksql.base.errors import AssertionFailed, StatementError
from ksql.statements import entities as e
from ksql.syntax import ast
from ksql.syntax import expr as ex

if TYPE_CHECKING:
    from ksql.statements.services import Request

_POLL_S = 0.1


def assert_topic(stmt: ast.AssertTopic, request: Request) -> e.Entity:
    """Poll until the assertion holds.

    Raises: AssertionFailed when the time is over.
    """
    default_ms = request.settings.number("ksql.assert.topic.default.timeout.ms")
    deadline = time.monotonic() + (stmt.timeout.ms if stmt.timeout else default_ms) / 1000
    while True:
        problem = _problem(stmt, request)
        if problem is None:
            return e.AssertTopic(
                statement_text=request.text, topic_name=stmt.topic, exists=stmt.exists
            )
        if time.monotonic() >= deadline:
            raise AssertionFailed(problem)
        time.sleep(_POLL_S)


def _problem(stmt: ast.AssertTopic, request: Request) -> str | None:
    found = request.services.monitor.topics().get(stmt.topic)
    if not stmt.exists:
        return None if found is None else f"Topic {stmt.topic} exists"
    if found is None:
        return f"Topic {stmt.topic} does not exist"
    actual = {"PARTITIONS": len(found), "REPLICAS": found[0] if found else 0}
    for each in stmt.properties:
        if not isinstance(each.value, ex.IntLit):
            raise StatementError(f"{each.name} must be a whole number", span=each.span)
        if each.name not in actual:
            return f"Cannot assert unknown topic property: {each.name}"
        if actual[each.name] != each.value.value:
            return (
                f"Mismatched configuration for topic {stmt.topic}: For config {each.name}, "
                f"expected {each.value.value} got {actual[each.name]}"
            )
    return None
