"""Shows the fields of a plan in the words of the statement, for an upgrade's reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ksql.core.ident import quote
from ksql.core.types.format import Format, KeyWindow, TimestampColumn, capabilities
from ksql.sql.binder import trees
from ksql.sql.binder.bound import Named
from ksql.sql.binder.show import show, show_call
from ksql.sql.plan.nodes import Fold, JoinWindow, TimeWindow

if TYPE_CHECKING:
    from collections.abc import Iterator


def shown(value: Any) -> str:
    """Return the value of a field as a user would write it; nothing is ``none``."""
    match value:
        case None | ():
            return "none"
        case tuple():
            return ", ".join(map(shown, value))
        case Named():
            return show(value.expr)
        case Format():
            return ", ".join(_format(value))
        case TimeWindow():
            return f"{value.kind} ({', '.join(_window(value))})"
        case JoinWindow():
            return " ".join(_within(value))
        case KeyWindow():
            size = "" if value.size_ms is None else f" ({_ms('SIZE', value.size_ms)})"
            return value.kind + size
        case TimestampColumn():
            return quote(value.name) + (f" as '{value.pattern}'" if value.pattern else "")
        case _:
            return show(value) if type(value) in trees.NODES else str(value)


def shown_fold(fold: Fold) -> str:
    """Return the aggregate's call."""
    return show_call(fold.function, fold.args, fold.literals)


def _format(value: Format) -> Iterator[str]:
    yield value.name
    if "delimiter" in capabilities(value.name).properties:
        yield f"delimiter {value.delimiter!r}"
    if value.wrap is not None:
        yield f"single values {'wrapped' if value.wrap else 'not wrapped'}"
    if value.schema_id is not None:
        yield f"schema {value.schema_id}"
    if value.schema_full_name is not None:
        yield f"schema {value.schema_full_name}"
    if value.nullable_representation is not None:
        yield f"nullable as {value.nullable_representation}"


def _window(value: TimeWindow) -> Iterator[str]:
    gap = value.kind == "SESSION"
    yield f"{value.size_ms} MILLISECONDS" if gap else _ms("SIZE", value.size_ms)
    if value.kind == "HOPPING":
        yield _ms("ADVANCE BY", value.advance_ms)
    yield _ms("RETENTION", value.retention_ms)
    yield _ms("GRACE PERIOD", value.grace_ms)


def _within(value: JoinWindow) -> Iterator[str]:
    before, after = (f"{ms} MILLISECONDS" for ms in (value.before_ms, value.after_ms))
    yield before if before == after else f"({before}, {after})"
    yield "without GRACE PERIOD" if value.grace_ms is None else _ms("GRACE PERIOD", value.grace_ms)


def _ms(word: str, number: int) -> str:
    return f"{word} {number} MILLISECONDS"
