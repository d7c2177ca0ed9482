"""Detects candidates that do not catch up, as their input grows faster than they read."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.control.engine.rebuild_progress import records_to_read

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ksql.core import QueryVersion
    from ksql.exec import BuildProgress
    from ksql.sql.catalog import Rebuild

_log = logging.getLogger(__name__)

SPAN_S: Final = 30.0
"""So long a candidate must have fallen back."""

_KEPT_S: Final = 60.0


class Candidate(NamedTuple):
    """A version that is built, and the offset of the command that began it.

    Another rollback after an aborted one builds the same version again: it is another candidate.
    """

    version: QueryVersion
    begun: int

    @classmethod
    def of(cls, rebuild: Rebuild) -> Candidate:
        """Return what identifies a rebuild's candidate among all others."""
        return cls(rebuild.candidate.version, rebuild.candidate.offset)


class CatchUpSpeed(NamedTuple):
    """The speed of a candidate that does not catch up, and that of its input, in records/s."""

    read_per_second: float
    input_per_second: float

    def __str__(self) -> str:
        return (
            f"does not catch up at {self.read_per_second:,.0f}/s "
            f"against {self.input_per_second:,.0f}/s"
        )


class _Measurement(NamedTuple):
    at_s: float
    position: int
    left: int


class CatchUp:
    """The looks at candidates; ``clock`` gives seconds.

    Only looks after a finished batch count: between two of them nothing seems to be read.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._looks: dict[Candidate, deque[_Measurement]] = {}
        self._growths: dict[Candidate, CatchUpSpeed] = {}

    def growth(self, candidate: Candidate) -> CatchUpSpeed | None:
        """Return the speeds of a candidate that does not catch up; None if it does."""
        return self._growths.get(candidate)

    def keep(self, candidates: Collection[Candidate]) -> None:
        """Forget all candidates but these."""
        for gone in self._looks.keys() - set(candidates):
            self.forget(gone)

    def forget(self, candidate: Candidate) -> None:
        """Forget the looks at a candidate: it has ended, or does not run."""
        self._looks.pop(candidate, None)
        self._growths.pop(candidate, None)

    def observe(self, candidate: Candidate, progress: BuildProgress, max_lag_s: float) -> None:
        """Note how far it is; the log has the beginning and the end of its falling back.

        One whose lag is at most so many seconds has caught up.
        """
        position = sum(sum(offsets.values()) for offsets in progress.position.values())
        looks = self._looks.setdefault(candidate, deque())
        if looks and looks[-1].position == position:
            return
        looks.append(_Measurement(self._clock(), position, records_to_read(progress)))
        while len(looks) > 2 and looks[-1].at_s - looks[1].at_s >= _KEPT_S:
            looks.popleft()
        first, last = looks[0], looks[-1]
        passed_s = last.at_s - first.at_s
        if passed_s < SPAN_S:
            return
        read = (last.position - first.position) / passed_s
        falls_back = last.left >= first.left and last.left > max_lag_s * read
        before = self._growths.pop(candidate, None)
        if falls_back:
            growth = CatchUpSpeed(read, read + (last.left - first.left) / passed_s)
            self._growths[candidate] = growth
            if before is None:
                extra = {"query": candidate.version.name, "why": str(growth)}
                _log.warning("rebuild_falls_back", extra=extra)
        elif before is not None:
            _log.info("rebuild_catches_up", extra={"query": candidate.version.name})
