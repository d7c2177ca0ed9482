"""START_MODE: where the candidate of a rebuild begins to read.

Source: docs/upgrades.md#rebuilds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from ksql.control.engine.errors import InvalidValue
from ksql.core.types import times
from ksql.exec.dataflow import at_time
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex
from ksql.sql.upgrade import RESET

if TYPE_CHECKING:
    from ksql.control.engine.context import PlanningInputs
    from ksql.control.planning.properties import With
    from ksql.sql.plan import QueryPlan

_Stated = TypeVar("_Stated", bound=ast.CreateAsSelect | ast.ReplaceQuery)
START: Final = "START_MODE"
EARLIEST: Final = "earliest"
LATEST: Final = "latest"

_WORDS: Final = {"earliest": EARLIEST, "now": LATEST}
"""The words, with what a plan keeps of each; any other text is a time."""

_CHOICES: Final = ", ".join(f"'{word}'" for word in _WORDS)


def start(options: With, inputs: PlanningInputs) -> str | None:
    """Read START_MODE, as a plan keeps ``auto.offset.reset``; None if it is not stated.

    Raises: InvalidValue.
    """
    text = options.text(START)
    if text is None:
        return None
    word = text.lower()
    return _WORDS[word] if word in _WORDS else at_time(_time_ms(text, inputs))


def _time_ms(text: str, inputs: PlanningInputs) -> int:
    try:
        time_ms = times.parse_timestamp(text)
    except ValueError as error:
        reason = f"String must be {_CHOICES} or a time like '2026-11-02T10:00:00': {error}"
        raise InvalidValue(START, text, reason) from error
    if time_ms < 0:
        raise InvalidValue(START, text, "The time lies before 1970-01-01T00:00:00")
    if time_ms > inputs.now_ms:
        raise InvalidValue(START, text, "The time lies in the future; write 'now'")
    return time_ms


def starting(plan: QueryPlan, stated: str | None) -> QueryPlan:
    """Return the plan with the stated start, if there is one."""
    if stated is None:
        return plan
    settings = {**dict(plan.settings), RESET: stated}
    return replace(plan, settings=tuple(settings.items()))


def from_the_beginning(stmt: _Stated) -> _Stated:
    """Return the statement with a start: what its sources still have, whatever they have lost."""
    kept = tuple(p for p in stmt.properties if p.name.upper() != START)
    return replace(stmt, properties=(*kept, ast.Property(START, ex.StringLit(EARLIEST))))
