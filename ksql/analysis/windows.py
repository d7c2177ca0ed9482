"""The WINDOW clause in milliseconds. Source: docs/sql/windows.md#windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ksql.base.errors import StatementError

if TYPE_CHECKING:
    from ksql.syntax import ast

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A window clause; ``advance_ms`` equals the size of TUMBLING and is 0 for SESSION."""

    kind: Literal["TUMBLING", "HOPPING", "SESSION"]
    size_ms: int
    advance_ms: int
    grace_ms: int
    retention_ms: int


def sizes(window: ast.Window, *, final: bool = False) -> Sizes:
    """Return the window with its defaults: grace fills up to a day, retention is size + grace.

    With EMIT FINAL (``final``) there is no grace by default: results would come a day late.

    Raises: StatementError for sizes that are zero, advances beyond the size, a retention that is
    too short.
    """
    size = window.size.ms
    advance = window.advance.ms if window.advance else (0 if window.kind == "SESSION" else size)
    if size <= 0 or (window.kind == "HOPPING" and advance <= 0):
        raise StatementError(
            "A window's size and advance must be larger than zero.", span=window.span
        )
    if advance > size:
        raise StatementError("A window cannot advance by more than its size.", span=window.span)
    grace = window.grace.ms if window.grace else 0 if final else max(DAY_MS - size, 0)
    retention = window.retention.ms if window.retention else size + grace
    if retention < size + grace:
        raise StatementError(
            f"The retention of a window must not be shorter than its size and grace period: "
            f"{retention} ms < {size + grace} ms.",
            span=window.span,
        )
    return Sizes(
        kind=window.kind, size_ms=size, advance_ms=advance, grace_ms=grace, retention_ms=retention
    )
