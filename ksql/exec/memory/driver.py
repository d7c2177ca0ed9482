"""Runs plans in memory, without Kafka and Spark, and reads their topics for clients.

Topics have one partition. Records are processed one by one in the order in which they were appended
to any topic. So a query over several topics sees them in the order of the test.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from threading import Condition
from typing import TYPE_CHECKING, Any, NamedTuple

from ksql.core import KsqlError, OutRecord, QueryVersion, RawRecord
from ksql.exec.dataflow import muted
from ksql.exec.dataflow.load import program_of
from ksql.exec.dataflow.program import Program, RawBatch, through
from ksql.exec.dataflow.query_start import read_topics, start_ms
from ksql.exec.operators.memory import MemoryStore
from ksql.exec.ports import LEFT_BEHIND, AwaitFirst, BuildProgress, FirstBatch, Switch
from ksql.functions import BUILTINS
from ksql.sql.catalog import PersistentQuery, Topic
from ksql.sql.plan import codec
from ksql.sql.upgrade import backfill

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ksql.core import Headers
    from ksql.formats import Registry
    from ksql.functions import Functions


_SERVICE_ID = "default_"


class Stored(NamedTuple):
    """A record in a topic; ``sequence`` counts through all topics."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers | None
    sequence: int


@dataclass
class MemoryTopics:
    """Topics and their records; ``written`` wakes those that wait for more of them."""

    known: dict[str, Topic] = field(default_factory=dict)
    records: dict[str, list[Stored]] = field(default_factory=dict)
    written: Condition = field(default_factory=Condition)
    _sequence: int = 0
    _identities: dict[str, int] = field(default_factory=dict)

    def describe(self, name: str) -> Topic | None:
        return self.known.get(name)

    def identity(self, name: str) -> str:
        """Return a number for each topic that was ever made."""
        return str(self._identities[name]) if name in self.known else ""

    def lost(self, name: str) -> int:
        """Return 0: no record is ever deleted here."""
        del name
        return 0

    def create(self, topic: Topic) -> bool:
        """Create it, unless it exists."""
        if topic.name in self.known:
            return False
        self.known[topic.name] = topic
        self._identities[topic.name] = len(self._identities) + 1 + sum(self._identities.values())
        return True

    def delete(self, names: Iterable[str]) -> None:
        """Delete topics with their records."""
        for name in names:
            self.known.pop(name, None)
            self.records.pop(name, None)

    def append(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers | None = None,
    ) -> None:
        """Write a record."""
        with self.written:
            self._sequence += 1
            log = self.records.setdefault(topic, [])
            log.append(Stored(key, value, timestamp, headers, self._sequence))
            self.written.notify_all()

    def rows(self, topic: str) -> dict[bytes, Stored]:
        """Return the last records of keys, in their order; none of deleted keys."""
        last: dict[bytes, Stored] = {}
        for record in self.records.get(topic, []):
            if record.key is not None:
                last.pop(record.key, None)
                last[record.key] = record
        return {key: record for key, record in last.items() if record.value is not None}

    def equalize(self, origin: str, target: str, now_ms: int) -> None:
        """Write to a topic what it lacks to have another one's rows; deletions as late as these."""
        there, here = self.rows(origin), self.rows(target)
        latest_ms = max((row.timestamp for row in (*there.values(), *here.values())), default=0)
        for key, row in there.items():
            if key not in here or here[key].value != row.value:
                self.append(target, key, row.value, row.timestamp, row.headers)
        for key in here:
            if key not in there:
                self.append(target, key, None, min(latest_ms, now_ms))


@dataclass
class _Running:
    program: Program[OutRecord]
    stores: list[MemoryStore]
    positions: dict[str, int]
    begins: dict[str, int]
    errors: list[tuple[str, str]] = field(default_factory=list)

    def log(self, operator: str, message: str, row: Any) -> None:
        del row
        self.errors.append((operator, message))


class MemoryRunner:
    """Hosts queries; ``drain`` lets them read what is there."""

    def __init__(
        self,
        topics: MemoryTopics,
        functions: Functions = BUILTINS,
        registry: Registry | None = None,
        *,
        now_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """Take ``now_ms``: the latest time of the rows that a cut-over deletes."""
        self._topics = topics
        self._now_ms = now_ms
        self._cut_over: dict[QueryVersion, int] = {}
        self._functions = functions
        self._registry = registry
        self.running: dict[QueryVersion, _Running] = {}
        self._resting: dict[QueryVersion, _Running] = {}

    def start(self, query: PersistentQuery) -> None:
        """Start a query, or continue with the state of a stopped one."""
        self._complete_cut_over(query)
        plan = codec.loads(query.plan)
        program = self._program(query)
        resting = self._resting.pop(query.version, None)
        if resting is not None:
            resting.program = program
            self.running[query.version] = resting
            return
        positions = {
            topic: _first(self._topics.records.get(topic, []), start)
            for topic, start in read_topics(plan).items()
        }
        stores = [MemoryStore() for _ in range(program.stages)]
        self.running[query.version] = _Running(program, stores, positions, dict(positions))

    def resume(self, queries: Iterable[PersistentQuery]) -> None:
        for query in queries:
            if query.version not in self.running:
                self.start(query)

    def resume_async(self, queries: Iterable[PersistentQuery]) -> None:
        """Continue the queries at once: here that takes no time."""
        self.resume(queries)

    def await_first_attempt(self, versions: Iterable[QueryVersion]) -> None:
        """Return at once: nothing takes time here."""

    def _program(self, query: PersistentQuery, *, silent: bool = False) -> Program[OutRecord]:
        plan = codec.loads(query.plan, self._functions)
        if silent:
            return muted.program(plan, self._functions, self._registry)
        plan = replace(plan, lanes=min(plan.lanes, 1))
        return program_of(plan, self._functions, self._registry)

    def stop(self, version: QueryVersion) -> None:
        """Stop; the state stays."""
        query = self.running.pop(version, None)
        if query is not None:
            self._resting[version] = query

    def stop_soon(self, versions: Iterable[QueryVersion], batch_s: float = 0.0) -> None:
        """Stop; the state stays."""
        for version in versions:
            self.stop(version)

    def forget(self, version: QueryVersion) -> None:
        """Drop the state of a stopped query."""
        self._resting.pop(version, None)
        self._cut_over.pop(version, None)

    def prepare_switch(
        self, old: PersistentQuery, new: PersistentQuery, *, half_written: bool = False
    ) -> Switch:
        """Try the new plan over the records that wait, and let the old one rest."""
        del half_written  # nothing is ever half done here
        running = self.running[old.version]
        batches = [_batch(*waiting) for waiting in self._waiting(running)]
        for _ in muted.results(self._program(new, silent=True), [batches], _ignore):
            pass  # an error ends it
        self.stop(old.version)
        return Switch(0, _offsets(running.positions))

    def commit_switch(self, new: PersistentQuery) -> AwaitFirst:
        """Continue with the new plan on the same state and positions."""
        self.start(new)
        return lambda _timeout_s: FirstBatch(0)

    def rollback_switch(self, old: PersistentQuery) -> None:
        self.resume([old])

    def check_replaceable(self, paused: PersistentQuery, *, half_written: bool = False) -> str:
        """Accept every query: nothing is ever half done here."""
        del paused, half_written
        return ""

    def progress(self, version: QueryVersion) -> BuildProgress | None:
        running = self.running.get(version)
        if running is None:
            return None
        ends = {topic: len(self._topics.records.get(topic, [])) for topic in running.positions}
        return BuildProgress(_offsets(running.begins), _offsets(running.positions), _offsets(ends))

    def free_bytes(self, version: QueryVersion) -> int | None:
        """Know nothing: its state is in memory."""
        del version
        return None

    def check_former(self, query: PersistentQuery) -> None:
        """Pass: a cut-over is completed at once here."""

    def stop_at_same_offsets(
        self, old: PersistentQuery, candidate: PersistentQuery, *, may_leave: bool = True
    ) -> Switch:
        """Have both read what is there, and let them rest.

        Raises: what a running version of a stream fails with; that of a table is left behind.
        """
        versions = (old.version, candidate.version)
        self.resume([old, candidate])
        self.drain([candidate.version])
        left = ""
        try:
            self.drain([old.version])
        except KsqlError as problem:
            if not may_leave or codec.loads(old.plan).sink.kind != "TABLE":
                raise
            left = LEFT_BEHIND.format(problem=problem.text())
        ended = candidate if left else old
        position = _offsets(self.running[ended.version].positions)
        self.stop_soon(versions)
        return Switch(0, position, left=left)

    def backfill(self, old: PersistentQuery, candidate: PersistentQuery) -> None:
        """Put the states together; both rest."""
        kept, built = self._resting[old.version], self._resting[candidate.version]
        plan, hidden = codec.loads(old.plan), codec.loads(candidate.plan).sink.topic or ""
        self._topics.equalize(plan.sink.topic or "", hidden, self._now_ms())
        for record in built.program.backfilled(
            backfill.first_added(plan), kept.stores[-1], built.stores[-1], built.log
        ):
            key, value, timestamp, headers = record
            self._topics.append(hidden, key, value, timestamp, headers)

    def resume_both(self, old: PersistentQuery, candidate: PersistentQuery) -> None:
        """Continue both; not one that was forgotten meanwhile."""
        self.resume(query for query in (old, candidate) if query.version in self._resting)

    def cut_over(self, old: PersistentQuery, new: PersistentQuery) -> AwaitFirst:
        self.stop_soon([old.version, new.version])
        self.start(new)
        return lambda _timeout_s: FirstBatch(0)

    def _complete_cut_over(self, query: PersistentQuery) -> None:
        """Bring the result's topic to the rows of the version that took over, once."""
        sink, hidden = codec.loads(query.plan).sink, query.version.results_topic(_SERVICE_ID)
        if query.cut_over is None or sink.topic in (None, hidden):
            return
        if self._cut_over.get(query.version) == query.cut_over.number:
            return
        self._cut_over[query.version] = query.cut_over.number
        if sink.kind == "TABLE":
            topic = sink.topic or ""
            version = QueryVersion(query.id, query.cut_over.former)
            former = Topic(version.results_topic(_SERVICE_ID), 1)
            self._topics.create(former)
            self._topics.equalize(topic, former.name, self._now_ms())
            self._topics.equalize(hidden, topic, self._now_ms())
        self._topics.delete([hidden])

    def drain(self, order: Iterable[QueryVersion]) -> None:
        """Run the queries, each to its end, until none has anything left to read."""
        present = [version for version in order if version in self.running]
        moved = True
        while moved:
            # every query gets its turn, so no short circuit
            moved = sum(self._advance(self.running[version]) for version in present) > 0

    def errors(self) -> list[tuple[str, str]]:
        """Return the entries of the processing log."""
        return [error for query in self.running.values() for error in query.errors]

    def _advance(self, query: _Running) -> bool:
        pending = self._waiting(query)
        for record, topic, offset in pending:
            self._process(query, record, topic, offset)
            query.positions[topic] = offset + 1
        return bool(pending)

    def _waiting(self, query: _Running) -> list[tuple[Stored, str, int]]:
        """Return the records that a query has not read, in their order, with topic and offset."""
        pending = [
            (record, topic, offset)
            for topic, position in query.positions.items()
            for offset, record in enumerate(
                self._topics.records.get(topic, [])[position:], start=position
            )
        ]
        pending.sort(key=lambda record: record[0].sequence)
        return pending

    def _process(self, query: _Running, record: Stored, topic: str, offset: int) -> None:
        results = through(query.program, _batch(record, topic, offset), query.stores, query.log)
        sink = query.program.sink_topic
        if sink is not None:
            for key, value, timestamp, headers in results:
                self._topics.append(sink, key, value, timestamp, headers)


def _first(records: Sequence[Stored], start: str) -> int:
    """Return the offset of the first record that a query reads which starts there."""
    if start == "earliest":
        return 0
    time_ms = start_ms(start)
    if time_ms is None:
        return len(records)
    later = (offset for offset, record in enumerate(records) if record.timestamp >= time_ms)
    return next(later, len(records))


def _offsets(positions: dict[str, int]) -> dict[str, dict[int, int]]:
    return {topic: {0: position} for topic, position in positions.items()}


def _batch(record: Stored, topic: str, offset: int) -> RawBatch:
    return RawBatch(
        [topic],
        [0],
        [offset],
        [record.timestamp],
        [record.key],
        [record.value],
        [record.headers] if record.headers else None,
    )


def _ignore(_operator: str, _message: str, _row: Any) -> None:
    """Ignore a record that fails by itself: the plan skips and logs it."""


_POLL_S = 0.25

Offsets = dict[tuple[str, int], int]


class MemoryExtents:
    """Which topics there are; each has one partition that begins with offset 0."""

    def __init__(self, topics: MemoryTopics) -> None:
        self._topics = topics

    def topics(self) -> list[str]:
        return list(self._topics.known)

    def begin_offsets(self, topics: Iterable[str]) -> Offsets:
        return {(topic, 0): 0 for topic in topics}

    def end_offsets(self, topics: Iterable[str]) -> Offsets:
        return {(topic, 0): len(self._topics.records.get(topic, ())) for topic in topics}

    def offsets_at(self, topics: Iterable[str], time_ms: int) -> Offsets:
        return {(topic, 0): self._first(topic, time_ms) for topic in topics}

    def _first(self, topic: str, time_ms: int) -> int:
        records = self._topics.records.get(topic, [])
        later = (offset for offset, record in enumerate(records) if record.timestamp >= time_ms)
        return next(later, len(records))


class MemoryFeed:
    """Records in the order in which they were appended; one thread reads, any may close."""

    def __init__(
        self,
        topics: MemoryTopics,
        start: Mapping[tuple[str, int], int],
        on_end: Callable[[], None] = lambda: None,
        *,
        follow: bool = True,
    ) -> None:
        """Wait, with ``follow``, for records that are still to come; else end with the last one."""
        self._topics = topics
        self._follow = follow
        self._on_end = on_end
        self._ending = threading.Event()
        self._closed = False
        self._held: set[tuple[str, int]] = set()
        self.positions = dict(start)

    @property
    def open(self) -> bool:
        return not self._ending.is_set()

    def poll(self) -> list[RawRecord]:
        with self._topics.written:
            if self._follow and not self._is_behind():
                self._topics.written.wait(_POLL_S)
            return self._taken()

    def pause(self, places: Collection[tuple[str, int]]) -> None:
        self._held = set(places)

    def end(self) -> None:
        self._ending.set()

    def close(self) -> None:
        self.end()
        if not self._closed:
            self._closed = True
            self._on_end()

    def _is_behind(self) -> bool:
        ends = MemoryExtents(self._topics).end_offsets(topic for topic, _ in self._free())
        return any(self.positions[partition] < end for partition, end in ends.items())

    def _taken(self) -> list[RawRecord]:
        records = []
        for topic, partition in self._free():
            begin = self.positions[topic, partition]
            log = self._topics.records.get(topic, [])[begin:]
            records += [
                (
                    entry.sequence,
                    RawRecord(
                        topic,
                        partition,
                        offset,
                        entry.timestamp,
                        entry.key,
                        entry.value,
                        list(entry.headers or ()),
                    ),
                )
                for offset, entry in enumerate(log, begin)
            ]
            self.positions[topic, partition] = begin + len(log)
        if not self._follow and not records:
            self.end()
        return [record for _, record in sorted(records, key=lambda numbered: numbered[0])]

    def _free(self) -> list[tuple[str, int]]:
        return [partition for partition in self.positions if partition not in self._held]


class MemoryRecords:
    """The ``Records`` of statements over topics in memory."""

    def __init__(self, topics: MemoryTopics) -> None:
        self._topics = topics

    def offsets_at(self, topics: Iterable[str], time_ms: int) -> Offsets:
        return MemoryExtents(self._topics).offsets_at(topics, time_ms)

    def read(
        self, spans: Mapping[tuple[str, int], tuple[int, int]], most: int | None = None
    ) -> list[RawRecord]:
        return [
            RawRecord(topic, 0, offset, stored.timestamp, stored.key, stored.value, stored.headers)
            for (topic, _), (start, end) in spans.items()
            for offset, stored in enumerate(
                self._topics.records.get(topic, [])[start:end][:most], start=start
            )
        ]

    def read_some(
        self, spans: Mapping[tuple[str, int], tuple[int, int]]
    ) -> tuple[list[RawRecord], bool]:
        return self.read(spans), True
