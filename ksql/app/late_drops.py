"""Queries that drop more of what they read than a few records: late, or not to be handled."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ksql.core.query_version import QueryVersion
    from ksql.spark.query.drop_counts import DropCounts
    from ksql.spark.query.query_metrics import Totals

_log = logging.getLogger(__name__)

_ONE_IN: Final = 100
"""A query may drop one record of so many without a warning."""


class LateDrops:
    """Looks at what queries have dropped of the last minutes' records."""

    def __init__(self) -> None:
        self._since: dict[QueryVersion, tuple[int, str]] = {}

    def look(self, version: QueryVersion, totals: Totals, now_ms: int) -> None:
        """See how much it is; the log has a warning when it becomes too much."""
        recent = totals.recent
        if recent.dropped * _ONE_IN <= recent.read:
            self._since.pop(version, None)
            return
        ahead = totals.ahead_ms is not None and totals.ahead_ms > now_ms
        text = _text(recent, ahead=ahead)
        begun = version not in self._since
        since_ms = now_ms if begun else self._since[version][0]
        self._since[version] = since_ms, text
        if begun:
            _log.warning("records_dropped", extra={"query_id": version.name, "reason": text})

    def warnings(self, version: QueryVersion) -> tuple[tuple[int, str], ...]:
        """Return the warning and since when it holds (ms); usually nothing."""
        warning = self._since.get(version)
        return () if warning is None else (warning,)


def _text(recent: DropCounts, *, ahead: bool) -> str:
    """Return the warning: the share, the reasons, and what to do.

    Where stream time is ``ahead`` of the clock no GRACE PERIOD is of use. No record is dropped by
    a RETENTION: that is never shorter than size and grace, so its window has closed before.
    """
    share = f"{_percent(recent)} of the last minutes' records were dropped"
    said = [f"{share}: {recent.dropped} of {recent.read}"]
    failed = recent.dropped - recent.late
    if (worst := recent.worst) is not None:
        said += [
            f"{recent.late} came late for stream time, the worst {worst.behind_ms} ms behind it "
            f'(topic "{worst.topic}", partition {worst.partition})',
            "stream time follows a record far ahead of the clock"
            if ahead
            else f"a GRACE PERIOD of {worst.behind_ms} MILLISECONDS takes such records "
            "(the RETENTION of a window must be at least that and its SIZE)",
        ]
    if failed > 0:
        said.append(f"{failed} could not be handled")
    return "; ".join([*said, "the processing log names them"])


def _percent(recent: DropCounts) -> str:
    """Return the share; records that several steps have dropped may make it more than all."""
    if not recent.read:
        return "100%"
    share = min(100 * recent.dropped / recent.read, 100)
    return f"{share:.1f}".removesuffix(".0") + "%"
