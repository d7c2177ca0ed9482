"""Push queries and pull queries over streams: merged by time; which of them are scalable.

The plan is hosted in this process and fed by a reader of its own. Starting one costs a consumer,
not a Spark query; its state lives in memory and ends with it.

Push queries that ksqlDB calls scalable read on from the newest record of what one running query
writes. Ours read its topic, as all push queries do: no query has to be started for them. Clients
still see a difference in the ids, and records without key are left out.

Source: docs/sql/reading.md#push-queries.

Records of several partitions come in the order of their times, until all have come to the present.

A consumer gives what has arrived, perhaps all of one topic before the first record of another. A
stream would be joined with a table that is not there yet. Windows would close before half of their
records were read. So, while partitions are behind, a record waits until each of those has a record
to compare it with. Afterwards records are taken as they arrive.

Much may come before the record that all wait for. When waiting records have filled their room, no
more is read of their partitions (``enough``) until half of them have been taken.

Source: Kafka Streams' choice among a task's partitions (KIP-695), its
``buffered.records.per.partition``.
"""

from __future__ import annotations

from collections import defaultdict, deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, Literal

from ksql.core import StatementError
from ksql.exec.dataflow import RawBatch, answering, through
from ksql.exec.operators import Bound, BoundedStore
from ksql.serving.feed import released
from ksql.serving.pull_restrictions import places
from ksql.serving.results import ResultRow
from ksql.sql.syntax import ast
from ksql.views import MORE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from ksql.core import RawRecord, Settings, Token
    from ksql.formats import Registry
    from ksql.functions import Functions
    from ksql.serving.feed import Feed, Offsets
    from ksql.sql.catalog import Catalog
    from ksql.sql.plan import QueryPlan

    Partition = tuple[str, int]


DEFAULT_STATE_BYTES = 268_435_456
_WAITING = 8
"""Records that wait for other partitions may take one in this many of the state's bytes more."""


class PushQuery:
    """A transient query; see ``ResultStream``.

    ``feed`` begins to read; ``until`` bounds it (a pull query over a stream). ``keyed`` leaves out
    what has no key. Without ``tombstones`` the deletions of a table are left out, as nothing that
    LIMIT counts. ``marked`` asks for them in a form that has no mark of its own, too.
    ``state_bytes`` is about how large its state may become. If it keeps any,
    ``present`` is asked where its topics end at its beginning: until then their records are taken
    by their times.
    """

    def __init__(
        self,
        plan: QueryPlan,
        functions: Functions,
        feed: Callable[[], Feed],
        *,
        until: Offsets | None = None,
        limit: int | None = None,
        registry: Registry | None = None,
        keyed: bool = False,
        tombstones: bool = True,
        marked: bool = False,
        state_bytes: int = DEFAULT_STATE_BYTES,
        present: Callable[[], Offsets] = dict,
    ) -> None:
        self.kind: Literal["pull", "push"] = "push" if until is None else "pull"
        self.query_id = plan.query_id
        self.columns = plan.sink.value
        self.final_message: str | None = None
        self.token: Callable[[], Token] | None = None
        self._program = answering(plan, functions, registry)
        names = [column.name for column in self.columns]
        self._keyed = keyed
        # a stream's record without value says nothing
        self._deletes = tombstones and plan.sink.kind == "TABLE"
        self.marks_deletes = self._deletes and marked
        self._key_places = [names.index(column.name) for column in plan.sink.key]
        stages, bound = self._program.stages, Bound(state_bytes)
        self._stores = [BoundedStore(bound) for _ in range(stages)]
        self._merging = TimeMerge(present(), state_bytes // _WAITING) if stages else None
        self._until = until
        self._limit = limit
        self._feed = feed()

    def batches(self) -> Iterator[list[ResultRow]]:
        """Yield rows as they come; an empty batch at least twice a second."""
        sent = 0
        with released(self._feed):
            if self._limit == 0:
                self.final_message = "Limit Reached"
                return
            while self._feed.open:
                rows = self._rows(self._next())
                if self._limit is not None and sent + len(rows) >= self._limit:
                    yield rows[: self._limit - sent]
                    self.final_message = "Limit Reached"
                    return
                sent += len(rows)
                yield rows
                if self._until is not None and self._is_done(self._until):
                    self.final_message = "Query Completed"
                    return
            self.final_message = "Query Completed"

    def end(self) -> None:
        """Let its reader come to an end."""
        self._feed.end()

    def close(self) -> None:
        """End it, whether or not anyone still reads."""
        self._feed.close()

    def _next(self) -> Sequence[RawRecord]:
        records, until = self._feed.poll(), self._until
        if until is not None:
            records = [r for r in records if r.offset < until[r.topic, r.partition]]
        if self._merging is None:
            return records
        ready = self._merging.ready(records, self._feed.positions)
        self._feed.pause(self._merging.enough)
        return ready

    def _is_done(self, until: Offsets) -> bool:
        positions = self._feed.positions
        return all(positions[partition] >= end for partition, end in until.items())

    def _rows(self, records: Sequence[RawRecord]) -> list[ResultRow]:
        if not records:
            return []
        results = through(self._program, raw_batch(records), self._stores, _ignore)
        return [
            self._tombstone(key) if value is None else ResultRow(value)
            for key, value, _, _, _ in results
            if (value is not None or self._deletes) and not (self._keyed and key is None)
        ]

    def _tombstone(self, key: tuple[Any, ...] | None) -> ResultRow:
        row = [None] * len(self.columns)
        for index, value in zip(self._key_places, key or (), strict=False):
            row[index] = value
        return ResultRow(tuple(row), tombstone=True)


def _ignore(_operator: str, _message: str, _row: object) -> None:
    """Ignore the error: without a processing log a record that fails gives NULL or no row."""


def raw_batch(records: Sequence[RawRecord]) -> RawBatch:
    """Return records as columns."""
    headers = [record.headers for record in records]
    return RawBatch(
        [record.topic for record in records],
        [record.partition for record in records],
        [record.offset for record in records],
        [record.timestamp for record in records],
        [record.key for record in records],
        [record.value for record in records],
        headers if any(headers) else None,
    )


def check_limit(query: ast.Query) -> None:
    """Refuse an end before the beginning.

    Raises: StatementError.
    """
    if query.limit is not None and query.limit < 0:
        raise StatementError(
            f"Push queries don't support negative integers in the LIMIT clause. {MORE}"
        )


SHOW_DELETES: Final = "ksql.push.show.deletes"
DELETED: Final = "ROWDELETED"
"""The column that says whether a row is gone, in forms of an answer without a mark for that."""


def check_mark(plan: QueryPlan) -> None:
    """Refuse a result over a table that has a column of the mark's name already.

    Raises: StatementError.
    """
    if plan.sink.kind == "TABLE" and any(c.name == DELETED for c in plan.sink.value):
        raise StatementError(
            f"The query has a column {DELETED}, as deletions would be marked by.",
            hint=f"Give the column another name, or SET '{SHOW_DELETES}'='auto';",
        )


_ENABLED = "ksql.query.push.v2.enabled"


def is_scalable(query: ast.Query, catalog: Catalog, settings: Settings) -> bool:
    """Return whether a push query is one of them."""
    source = query.source
    return (
        settings.flag(_ENABLED)
        and settings.text("auto.offset.reset") == "latest"
        and isinstance(source, ast.SourceRef)
        and query.emit == "CHANGES"
        and query.window is None
        and query.group_by is None
        and query.partition_by is None
        and query.having is None
        and len(catalog.writers(source.name)) == 1
        and not _names_places(query)
    )


def _names_places(query: ast.Query) -> bool:
    exprs = [item.expr for item in query.select if isinstance(item, ast.SelectItem)]
    return bool(places(exprs if query.where is None else [*exprs, query.where]))


DEFAULT_ROOM: Final = 33_554_432
_RECORD_BYTES: Final = 400
_HEADER_BYTES: Final = 150


class TimeMerge:
    """The records that wait; ``ends`` are the offsets up to which partitions are behind.

    ``room`` is about how many bytes may wait.
    """

    def __init__(self, ends: Mapping[Partition, int], room: int = DEFAULT_ROOM) -> None:
        self._behind = dict(ends)
        self._room = room
        self._bytes = 0
        self._full = False
        self._held: defaultdict[Partition, deque[RawRecord]] = defaultdict(deque)

    def ready(
        self, records: Sequence[RawRecord], positions: Mapping[Partition, int]
    ) -> Sequence[RawRecord]:
        """Return the records whose turn has come, when some more have been read.

        ``positions`` is how far each partition has been read, these records included.
        """
        if not self._behind and not self._held:
            return records
        for record in records:
            self._held[record.topic, record.partition].append(record)
            self._bytes += _size(record)
        self._behind = {
            partition: end
            for partition, end in self._behind.items()
            if positions.get(partition, end) < end
        }
        taken = self._taken()
        self._bytes -= sum(map(_size, taken))
        self._full = self._bytes > (self._room // 2 if self._full else self._room)
        return taken

    @property
    def enough(self) -> Collection[Partition]:
        """The partitions of which no more should be read for now.

        One of which nothing waits is never among them: the others wait for it.
        """
        return set(self._held) if self._full else ()

    def _taken(self) -> list[RawRecord]:
        held = self._held
        missing = sum(partition not in held for partition in self._behind)
        heads = [(queue[0].timestamp, partition) for partition, queue in held.items()]
        heapify(heads)
        taken: list[RawRecord] = []
        while heads and not missing:
            _, partition = heappop(heads)
            queue = held[partition]
            taken.append(queue.popleft())
            if queue:
                heappush(heads, (queue[0].timestamp, partition))
            else:
                del held[partition]
                missing += partition in self._behind
        return taken


def _size(record: RawRecord) -> int:
    """Estimate how many bytes a record takes in memory."""
    size = _RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
    if record.headers:
        size += sum(_HEADER_BYTES + len(name) + len(value or b"") for name, value in record.headers)
    return size
