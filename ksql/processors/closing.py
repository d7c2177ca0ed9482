"""EMIT FINAL over SESSION windows: each session once, when no record can join it in time any more.

A session closes when stream time has passed its end by more than gap and grace. With the record
that brings that about leave all sessions that have closed, by their ends, their starts and the
order of the groups' keys. Sessions that end longer before the latest one than RETENTION may be
forgotten by then, whole segments of time at once: they are logged instead.
Source: Kafka Streams' ``EmitStrategy.onWindowClose`` (KIP-825).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from ksql.processors.due import Due
from ksql.processors.final import FORGOTTEN
from ksql.types.windowed import WindowedKeys, session_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ksql.base.records import Row
    from ksql.processors.base import KeyOrder, LogError, Record, Store
    from ksql.processors.sessionstate import Bucket, Group, Session

_KEYS = WindowedKeys(None)


class Closing:
    """The sessions of one bucket that wait for their close, for one call.

    ``new`` are those that the store does not have; ``waiting`` may close in this call.
    """

    def __init__(
        self,
        bucket: Bucket,
        store: Store,
        order: KeyOrder,
        row: Callable[[Group, Session, LogError], Row | None],
        log: LogError,
    ) -> None:
        self._bucket = bucket
        self._order = order
        self._row = row
        self._log = log
        self._due = Due.read(store, 1, bucket.open_ms)
        self._limit = -1
        self._new: dict[bytes, int] = {}
        self._alive: set[bytes] = set()
        self._waiting: list[tuple[int, int, bytes]] = []

    def load(self, records: Sequence[Record]) -> None:
        """Fetch what ``begin`` looks through."""
        newest = max((record.timestamp for record in records), default=-1)
        self._limit = max(newest, self._bucket.stream_time) - self._bucket.open_ms - 1
        self._due.load_upto(self._limit)

    def begin(self, earliest: dict[bytes, int]) -> None:
        """Find the sessions that may close; their groups are to be loaded from their ends on."""
        for whole in self._due.upto(self._limit):
            key, (start, end) = _KEYS.split(whole)
            if end <= self._limit:
                self._waiting.append((end, start, key))
                self._alive.add(whole)
                earliest[key] = min(end, earliest.get(key, end))
        heapify(self._waiting)

    def removed(self, group: Group, session: Session, _old: Row | None, _record: Record) -> None:
        """Let a session that is no more wait no longer."""
        self._forget(session_key(group.key, session.start, session.end), session.end)

    def updated(self, group: Group, session: Session, old: Row | None, _record: Record) -> None:
        """Let a session wait, if it did not before under the same bounds."""
        if old is not None:
            return
        end, whole = session.end, session_key(group.key, session.start, session.end)
        self._new[whole] = end
        if end <= self._limit:
            self._alive.add(whole)
            heappush(self._waiting, (end, session.start, group.key))

    def after(self, record: Record) -> Iterator[Record]:
        """Return the results of the sessions that have closed with that record."""
        waiting, close_time = self._waiting, self._bucket.close_time
        closed = []
        while waiting and waiting[0][0] < close_time:
            end, start, key = heappop(waiting)
            whole = session_key(key, start, end)
            if whole in self._alive:  # else it was merged since
                self._forget(whole, end)
                closed.append((end, start, self._order(key), key))
        for end, start, _, key in sorted(closed):
            if end < self._bucket.kept_from:
                self._log(
                    "aggregate", f"{FORGOTTEN}: the session from {start} to {end}", record.row
                )
                continue
            group = self._bucket.group(key)
            row = self._row(group, group.of(start, end), self._log)
            if row is not None:
                yield record._replace(key=key, row=row, timestamp=end, old=None)

    def finish(self) -> Iterator[Record]:
        """Store what waits; nothing else is to be emitted."""
        for whole, end in self._new.items():
            self._due.add(end, whole)
        self._due.write(self._bucket.close_time)
        return iter(())

    def _forget(self, whole: bytes, end: int) -> None:
        self._alive.discard(whole)
        if self._new.pop(whole, None) is None:
            self._due.remove(end, whole)
