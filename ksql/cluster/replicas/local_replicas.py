"""The replicas on this server: answers reads of them, and measures their lag.

Source: KIP-535.

The lag is how far topics are ahead of the stores that follow them, in offsets and in time.

The ends of topics are asked for now and then. Offsets: the end last seen, less the position. Time:
how long ago the latest end was seen that the store has reached. So it needs no record's timestamp
and no clock of another machine. It never says too little: all that was in the topic then is in the
store. It says too much by the time between two looks at most.

A look is valid for a few seconds only, by a clock that continues while the machine sleeps or the
process is stopped. A process that returns from a pause knows that it does not know the ends.

Source: KIP-535 (offset lag); the time lag is an upper bound of its own making.
"""

from __future__ import annotations

import itertools
import math
import threading
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from ksql.cluster.replicas.read_request import (
    ReadRejected,
    ReadRequest,
    ReadResult,
    ReplicaReader,
    Unreachable,
)
from ksql.cluster.replicas.replica_status import MISSING, ReplicaStatus
from ksql.core import KsqlError
from ksql.views import CHUNK_ROWS, PartitionStore, ViewMaintainer, query_id_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from ksql.cluster.replicas.partition_assignment import PartitionAssignment
    from ksql.core import PartitionId


T = TypeVar("T")
_FRESH_S: Final = 0.25
_OLD_S: Final = 1.0


class LocalReplicas(ReplicaReader):
    """The stores of one server; for any number of threads."""

    def __init__(
        self, tables: ViewMaintainer, roles: PartitionAssignment, lag_tracker: LagTracker
    ) -> None:
        self._tables = tables
        self._roles = roles
        self._lag_tracker = lag_tracker

    def read(self, ask: ReadRequest) -> ReadResult:
        try:
            part = self._part(ask.query_id, ask.partition)
            status = self._status_for(part, ask)
            if part is None or not ask.terms.accept(status):
                raise ReadRejected(status)
            return self._reading(part, ask)
        except KsqlError as error:
            raise Unreachable(error.text()) from error

    def _reading(self, part: PartitionStore, ask: ReadRequest) -> ReadResult:
        """Begin to read a store; the position that is shown is that of the rows that are read.

        Raises: ReadRejected, KsqlError.
        """
        rows = part.store.committed() if ask.committed else part.store
        seen = partial(part.seen, committed=ask.committed)
        if ask.keys is None:
            stored, position, shown = part.read(
                lambda: rows.range(*ask.span), committed=ask.committed
            )
            chunks = iter(lambda: list(itertools.islice(stored, CHUNK_ROWS)), [])
            status = self._accepted(part, ask, position, shown=shown)
            return ReadResult(status, rows=_reported(chunks), seen=seen, hidden=rows.hidden)
        keys = ask.keys
        answers, position, shown = part.read(
            lambda: [
                rows.get_many(keys[at : at + CHUNK_ROWS]) for at in range(0, len(keys), CHUNK_ROWS)
            ],
            committed=ask.committed,
        )
        status = self._accepted(part, ask, position, shown=shown)
        return ReadResult(status, answers=iter(answers), seen=seen, hidden=rows.hidden)

    def _accepted(
        self, part: PartitionStore, ask: ReadRequest, position: int, *, shown: bool
    ) -> ReplicaStatus:
        """Return how far a replica was at that position, if it may answer.

        Raises: ReadRejected.
        """
        status = self._status(part, position)
        if not shown:
            raise ReadRejected(replace(status, state="RESTORING"))
        if not ask.terms.accept(status):
            raise ReadRejected(status)
        return status

    def replica_statuses(self) -> dict[tuple[str, int], ReplicaStatus]:
        """Return how far every replica is, by query and partition, as far as its topic was seen."""
        return {
            (query_id_of(table.source), number): self._status(part, part.at())
            for table in self._tables.tables()
            for number, part in sorted(table.parts.items())
        }

    def refresh(self) -> None:
        """Ask how far the topics of all replicas are.

        Raises: KsqlError.
        """
        topics = {table.source.topic for table in self._tables.tables() if table.parts}
        self._lag_tracker.keep(topics)
        if topics:
            self._lag_tracker.poll(topics)

    def measured(self, partition: PartitionId, status: ReplicaStatus) -> ReplicaStatus:
        """Return how far a copy is behind by a look of this moment.

        Raises: KsqlError.
        """
        self._lag_tracker.freshen(*partition, _FRESH_S)
        offsets, time_ms = self._lag_tracker.lag(partition, status.position)
        return replace(status, offset_lag=offsets, time_lag_ms=time_ms)

    def _part(self, query_id: str, partition: int) -> PartitionStore | None:
        table = self._tables.of_query(query_id)
        return None if table is None else table.parts.get(partition)

    def _status_for(self, part: PartitionStore | None, ask: ReadRequest) -> ReplicaStatus:
        """Return how far a replica is; looked at again if it has a limit."""
        if part is None:
            return MISSING
        if not ask.terms.limited:
            return self._status(part, part.at(committed=ask.committed))
        self._lag_tracker.freshen(*part.place, _OLD_S)
        status = self._status(part, part.at(committed=ask.committed))
        if not ask.terms.accept(status):
            self._lag_tracker.freshen(*part.place, _FRESH_S)
            status = self._status(part, part.at(committed=ask.committed))
        return status

    def _status(self, part: PartitionStore, position: int) -> ReplicaStatus:
        offsets, time_ms = self._lag_tracker.lag(part.place, position)
        runs = 0 <= part.goal <= position and not self._tables.waits
        return ReplicaStatus(
            state="RUNNING" if runs else "RESTORING",
            role=self._roles.role(*part.place),
            position=position,
            offset_lag=offsets,
            time_lag_ms=time_ms,
        )


def _reported(chunks: Iterator[T]) -> Iterator[T]:
    """Yield chunks; a store that fails or is closed meanwhile is as good as out of reach."""
    try:
        yield from chunks
    except KsqlError as error:
        raise Unreachable(error.text()) from error


TopicPartition = tuple[str, int]
_MOST_LOOKS: Final = 600
KNOWN_S: Final = 5.0
"""How long the end of a topic that was looked at counts as known."""


@dataclass(slots=True)
class _Seen:
    """The ends of one partition as they were seen, and when.

    What one position has reached says nothing of another: a store has a committed one as well, and
    begins again where it is filled again.
    """

    end: int = 0
    at_s: float = 0.0
    ends: list[int] = field(default_factory=list)
    times_s: list[float] = field(default_factory=list)

    def observe(self, at_s: float, end: int) -> None:
        if at_s < self.at_s:  # another thread has looked since
            return
        if end < self.end:  # the topic was recreated
            self.ends.clear()
            self.times_s.clear()
        self.end, self.at_s = end, at_s
        if self.ends and self.ends[-1] == end:
            self.times_s[-1] = at_s  # a later look at the same end says more
            return
        self.ends.append(end)
        self.times_s.append(at_s)
        if len(self.ends) > _MOST_LOOKS:  # with fewer of them a lag is longer, never shorter
            del self.ends[1:-1:2], self.times_s[1:-1:2]

    def level_s(self, position: int) -> float | None:
        """Return when the latest end was seen that a position has reached; None if none was."""
        reached = bisect_right(self.ends, position)
        return self.times_s[reached - 1] if reached else None


class LagTracker:
    """The lags of this server's stores; for any number of threads."""

    def __init__(
        self,
        ends: Callable[[Iterable[str]], Mapping[TopicPartition, int]],
        now_s: Callable[[], float],
    ) -> None:
        """Take ``ends``, which asks for the offsets after all records.

        ``now_s`` is a clock in seconds that does not rest while the machine sleeps.
        """
        self._ends = ends
        self._now_s = now_s
        self._seen: dict[TopicPartition, _Seen] = {}
        self._lock = threading.Lock()
        self._looking = threading.Lock()

    def poll(self, topics: Iterable[str]) -> None:
        """Ask for the ends of these topics.

        Raises: KsqlError.
        """
        at_s = self._now_s()  # before: what comes while it is asked is not in the answer
        ends = self._ends(sorted(set(topics)))
        with self._lock:
            for partition, end in ends.items():
                self._seen.setdefault(partition, _Seen()).observe(at_s, end)

    def freshen(self, topic: str, partition: int, within_s: float) -> None:
        """Look at a topic unless that was done so short a time ago; threads share one look.

        Raises: KsqlError.
        """
        with self._looking:
            with self._lock:
                seen = self._seen.get((topic, partition))
                if seen is not None and self._now_s() - seen.at_s <= within_s:
                    return
            self.poll([topic])

    def keep(self, topics: Collection[str]) -> None:
        """Forget all but these topics."""
        with self._lock:
            self._seen = {
                partition: seen for partition, seen in self._seen.items() if partition[0] in topics
            }

    def lag(self, partition: TopicPartition, position: int) -> tuple[int | None, int | None]:
        """Return how many offsets and milliseconds a store is behind, as far as is known.

        The offsets are not known if the last look is too old.
        """
        with self._lock:
            seen = self._seen.get(partition)
            if seen is None:
                return None, None
            level_s = seen.level_s(position)
            now_s = self._now_s()
        time_ms = None if level_s is None else max(0, math.ceil((now_s - level_s) * 1000))
        offsets = max(0, seen.end - position) if now_s - seen.at_s <= KNOWN_S else None
        return offsets, time_ms
