"""Runs the old and the new plan of a replacement over their sources' last records, to compare.

Both run in memory, record by record, although queries run on Spark. The operators are the same, and
the query tests hold both hosts to the same results. A job of Spark would take seconds of the cores
that running queries need. Here nothing can be written, registered or kept: a program without a sink
gives rows, and its state is dropped.

Source: docs/upgrades.md#evidence-before-a-replacement.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ksql.control.access import EVERY, Need, NotPermitted, Right
from ksql.control.statements.upgradereport import RowDifference, SampleReport
from ksql.core import KsqlError, excerpt
from ksql.core.types import stringer
from ksql.exec.dataflow import RawBatch, muted, read_topics, through
from ksql.exec.operators import Bound, BoundedStore, TooMuchState, estimate
from ksql.sql.plan import QueryPlan, codec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ksql.control.engine.context import Prepared
    from ksql.control.statements.services import Partition, Request
    from ksql.core import RawRecord
    from ksql.core.types import Bounds, Column
    from ksql.exec.dataflow import Program, Result

SAMPLE: Final = "ksql.upgrade.explain.sample"

MOST_SHOWN: Final = 20
LONGEST_S: Final = 10.0
MOST_ROWS: Final = 100_000
"""So many rows both plans give at most: a table function may make many of each record."""

_STATE_BYTES: Final = 64 << 20
ROW_BYTES: Final = 64 << 20
"""So many bytes the rows take that are kept of a plan, and those that it gives of one record."""
_CELL: Final = 100


def sampled(
    prepared: Prepared, request: Request, clock: Callable[[], float] = time.monotonic
) -> SampleReport | None:
    """Return how the results differ; None if no sample is wanted. ``clock`` gives seconds.

    Raises: KsqlError if Kafka cannot be read.
    """
    count = request.settings.number(SAMPLE)
    if not count or {"old", "new"} - prepared.plans.keys():
        return None
    refused = _refusal(prepared, request)
    if refused is not None:
        return SampleReport(0, False, 0, 0, 0, trouble=refused.text())
    context = request.engine.context(request.settings, 0)
    old, new = (codec.loads(prepared.plans[name], context.functions) for name in ("old", "new"))
    records, whole = _last_records({*read_topics(old), *read_topics(new)}, count, request)
    try:
        sides = [
            _PlanRun(plan, muted.answering_program(plan, context.functions, context.registry))
            for plan in (old, new)
        ]
    except KsqlError as problem:
        return SampleReport(0, False, 0, 0, 0, trouble=problem.text())
    compare = _tables if old.sink.kind == "TABLE" else _streams
    report = compare(sides[0], sides[1], records, clock)
    return report if whole else replace(report, complete=False)


def _refusal(prepared: Prepared, request: Request) -> NotPermitted | None:
    """Return why the user may not see rows of the result as it is; to define it is not to read."""
    query = request.engine.catalog.query(prepared.query_id or "")
    sink = query.sink if query is not None else None
    return request.requester.lacks((Need(Right.READ, "source", sink or EVERY),))


def _last_records(
    topics: Iterable[str], count: int, request: Request
) -> tuple[list[RawRecord], bool]:
    """Return the last records of each topic, in the order of their partitions' times.

    Each partition has an equal share. Within a partition the order is that of the offsets.

    Returns: the records, and whether these are all: they may be too large, or not come in time.
    """
    ends = request.services.monitor.ends(sorted(topics))
    partitions: dict[str, int] = defaultdict(int)
    for topic, _ in ends:
        partitions[topic] += 1
    spans = {
        at: (max(begin, end - max(1, count // partitions[at[0]])), end)
        for at, (begin, end) in ends.items()
    }
    read, whole = request.services.records.read_some(spans)
    records = sorted(read, key=lambda r: (r.topic, r.partition, r.offset))
    latest: dict[Partition, int] = {}
    turns = []
    for record in records:
        at = record.topic, record.partition
        latest[at] = max(latest.get(at, record.timestamp), record.timestamp)
        turns.append((latest[at], *at, record.offset))
    return [record for _, record in sorted(zip(turns, records, strict=True))], whole


class _Row(NamedTuple):
    """A result: its key with the bounds of its window, and its value; no value is a deletion."""

    key: tuple[Any, ...]
    bounds: Bounds | None
    value: tuple[Any, ...] | None


class _PlanRun:
    """One of the plans at work; ``rows`` counts its results."""

    def __init__(self, plan: QueryPlan, program: Program[Result]) -> None:
        self._program = program
        bound = Bound(_STATE_BYTES)
        self._stores = [BoundedStore(bound) for _ in range(program.stages)]
        self._key, self._value = plan.sink.key, plan.sink.value
        self.columns = tuple(column.name for column in plan.sink.value)
        self.rows = 0

    def results(self, record: RawRecord) -> list[_Row]:
        """Return the results of the next record.

        Raises: whatever would end the query.
        """
        if record.topic not in self._program.topics:
            return []
        batch = RawBatch(
            [record.topic],
            [record.partition],
            [record.offset],
            [record.timestamp],
            [record.key],
            [record.value],
            [record.headers] if record.headers else None,
        )
        results = through(self._program, batch, self._stores, _ignore)
        rows, room = [], Bound(ROW_BYTES)
        for key, value, _, _, bounds in islice(results, MOST_ROWS):
            row = _Row(tuple(key or ()), bounds, None if value is None else tuple(value))
            room.add(estimate(row))
            rows.append(row)
        self.rows += len(rows)
        return rows

    def key_text(self, row: _Row) -> dict[str, str | None]:
        """Return the key's columns as text, with the bounds of the window."""
        shown = _texts(self._key, row.key)
        if row.bounds is not None:
            start, end = row.bounds
            shown |= {"WINDOWSTART": str(start), "WINDOWEND": str(end)}
        return shown

    def value_text(self, row: _Row | None) -> dict[str, str | None] | None:
        """Return the value's columns as text; None if there is no row."""
        return None if row is None or row.value is None else _texts(self._value, row.value)

    def shared(self, row: _Row | None, names: frozenset[str]) -> dict[str, Any] | None:
        """Return the columns that both plans have; None if there is no row."""
        if row is None or row.value is None:
            return None
        columns = zip(self.columns, row.value, strict=True)
        return {name: value for name, value in columns if name in names}


def _texts(columns: Sequence[Column], values: Sequence[Any]) -> dict[str, str | None]:
    return {
        column.name: None if value is None else excerpt(str(stringer(column.type)(value)), _CELL)
        for column, value in zip(columns, values, strict=False)
    }


def _ignore(_operator: str, _message: str, _row: object) -> None:
    """Ignore a record that fails by itself: a query would log and skip it, too."""


class _SampleRun:
    """Both plans over the records, as long as the time and the room last."""

    def __init__(
        self, old: _PlanRun, new: _PlanRun, records: Sequence[RawRecord], clock: Callable[[], float]
    ) -> None:
        self._old = old
        self._new = new
        self._records = records
        self._clock = clock
        self.read = 0
        self.trouble = ""

    def __iter__(self) -> Iterator[tuple[list[_Row], list[_Row]]]:
        """Yield the results of the old and of the new plan for each record."""
        deadline = self._clock() + LONGEST_S
        for record in self._records:
            if self._clock() > deadline or self._old.rows + self._new.rows > MOST_ROWS:
                return
            try:
                given = self._old.results(record), self._new.results(record)
            except TooMuchState:
                return
            except KsqlError as problem:
                self.trouble = problem.text()
                return
            self.read += 1
            yield given

    def cut(self) -> None:
        """Take the last record back: there was no room for its rows."""
        self.read -= 1

    def report(self, pairs: Iterable[tuple[_Row | None, _Row | None]]) -> SampleReport:
        """Return the report of the rows that the old and the new plan give in one place."""
        names = frozenset(self._old.columns) & frozenset(self._new.columns)
        different, shown = 0, []
        for old, new in pairs:
            if self._differ(old, new, names):
                different += 1
                shown += [self._shown(old, new)] if different <= MOST_SHOWN else []
        return SampleReport(
            self.read,
            self.read == len(self._records),
            self._old.rows,
            self._new.rows,
            different,
            tuple(shown),
            self.trouble,
        )

    def _differ(self, old: _Row | None, new: _Row | None, names: frozenset[str]) -> bool:
        return self._old.shared(old, names) != self._new.shared(new, names)

    def _shown(self, old: _Row | None, new: _Row | None) -> RowDifference:
        key = self._new.key_text(new) if new is not None else {}
        if old is not None:
            key = self._old.key_text(old)
        return RowDifference(key, self._old.value_text(old), self._new.value_text(new))


def _tables(
    old: _PlanRun, new: _PlanRun, records: Sequence[RawRecord], clock: Callable[[], float]
) -> SampleReport:
    """Compare what two tables hold after the last record."""
    walk = _SampleRun(old, new, records, clock)
    held = _Held(), _Held()
    try:
        for given in walk:
            for rows, side in zip(given, held, strict=True):
                side.put(rows)
    except TooMuchState:
        walk.cut()
    before, after = (side.rows for side in held)
    return walk.report((before.get(key), after.get(key)) for key in {**before, **after})


class _Held:
    """The rows of a table."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, Bounds | None], _Row] = {}
        self._room = Bound(ROW_BYTES)

    def put(self, rows: Iterable[_Row]) -> None:
        """Keep them instead of those with their keys.

        Raises: TooMuchState.
        """
        for row in rows:
            key = repr(row.key), row.bounds  # a key may be a list
            self._room.add(estimate(row) - estimate(self.rows.get(key, ())))
            self.rows[key] = row


def _streams(
    old: _PlanRun, new: _PlanRun, records: Sequence[RawRecord], clock: Callable[[], float]
) -> SampleReport:
    """Compare the results of two streams record by record: what each has made of it."""
    walk = _SampleRun(old, new, records, clock)
    return walk.report(pair for given in walk for pair in _paired(*given))


def _paired(old: Sequence[_Row], new: Sequence[_Row]) -> Iterator[tuple[_Row | None, _Row | None]]:
    """Yield results in their order; two of other keys are one that goes and one that comes."""
    for before, after in zip_longest(old, new):
        if before is None or after is None or before[:2] == after[:2]:
            yield before, after
        else:
            yield before, None
            yield None, after
