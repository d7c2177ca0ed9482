"""The WINDOW clause in milliseconds. Source: docs/sql/windows.md#windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ksql.core import TOO_MANY_WINDOWS, StatementError

if TYPE_CHECKING:
    from ksql.core import Span
    from ksql.sql.syntax import ast

DAY_MS = 86_400_000


class ShortRetention(StatementError):
    """A retention that would drop windows to which records may still come."""

    def __init__(
        self, kind: str, size: int, grace: int, retention: int, *, span: Span | None
    ) -> None:
        store, size_, got = (
            ("session", "the session inactivity gap", "gap")
            if kind == "SESSION"
            else ("window", "its window size", "size")
        )
        super().__init__(
            f"The retention period of the {store} store Aggregate-Aggregate-Materialize must be no "
            f"smaller than {size_} plus the grace period. "
            f"Got {got}=[{size}], grace=[{grace}], retention=[{retention}]",
            hint="Without GRACE PERIOD it is what the window is shorter than a day.",
            span=span,
        )


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
    _check_size(window, size, advance)
    grace = window.grace.ms if window.grace else 0 if final else max(DAY_MS - size, 0)
    retention = window.retention.ms if window.retention else size + grace
    if retention < size + grace:
        raise ShortRetention(window.kind, size, grace, retention, span=window.span)
    return Sizes(
        kind=window.kind, size_ms=size, advance_ms=advance, grace_ms=grace, retention_ms=retention
    )


def _check_size(window: ast.Window, size: int, advance: int) -> None:
    """Refuse windows and gaps of no length, and windows that leave times out."""
    if size <= 0 and window.kind == "SESSION":
        raise StatementError("Gap time cannot be zero or negative.", span=window.span)
    if size <= 0:
        raise StatementError("Window size (sizeMs) must be larger than zero.", span=window.span)
    if window.kind == "HOPPING" and not 0 < advance <= size:
        raise StatementError(
            "Window advancement interval should be more than zero and less than window duration "
            f"which is {size} ms, but given advancement interval is: {advance} ms",
            span=window.span,
        )


def check_overlap(window: ast.Window | None, most: int) -> None:
    """Refuse windows that overlap so much that a record is in more than ``most`` of them.

    Raises: StatementError.
    """
    if window is None or window.kind != "HOPPING":
        return
    span = sizes(window)
    windows = -(-span.size_ms // span.advance_ms)
    if windows > most:
        raise TOO_MANY_WINDOWS(windows=windows, most=most, span=window.span)
