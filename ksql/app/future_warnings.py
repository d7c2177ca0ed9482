"""The warning of a query whose stream time is ahead of the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.types.times import format_timestamp

if TYPE_CHECKING:
    from ksql.spark.query.query_metrics import Totals


def ahead_warnings(totals: Totals, now_ms: int) -> tuple[tuple[int, str], ...]:
    """Return since when (ms), and what is wrong; nothing once the clock has come that far."""
    latest = totals.ahead_ms
    if latest is None or latest <= now_ms:
        return ()
    warning = (
        f"a record has the timestamp {latest} ({format_timestamp(latest)}), far ahead of the "
        "clock: stream time follows it, so that windows close and records of an earlier time may "
        "be late; the processing log names the record"
    )
    return ((totals.ahead_since_ms, warning),)
