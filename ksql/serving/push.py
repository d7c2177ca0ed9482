"""Push queries, and pull queries over streams.

A plan hosted in this process, fed by a reader of its own. Starting one costs a consumer, not a
Spark query; its state lives in memory and ends with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ksql.core.errors import StatementError
from ksql.exec.dataflow.compiled import answering
from ksql.exec.dataflow.program import RawBatch, through
from ksql.exec.operators.bounded import Bound, BoundedStore
from ksql.serving.results import ResultRow
from ksql.serving.time_merge import Merging
from ksql.views.errors import MORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ksql.core.records import RawRecord
    from ksql.core.token import Token
    from ksql.formats.schema_registry import Registry
    from ksql.functions.registry import Functions
    from ksql.serving.feed import Feed, Offsets
    from ksql.sql.plan.nodes import QueryPlan
    from ksql.sql.syntax import ast

DEFAULT_STATE_BYTES = 268_435_456
_WAITING = 8
"""Records that wait for other partitions may take one in this many of the state's bytes more."""


class PushQuery:
    """A transient query; see ``ResultStream``.

    ``feed`` begins to read; ``until`` bounds it (a pull query over a stream). ``keyed`` leaves out
    what has no key. Without ``tombstones`` the deletions of a table are left out, as nothing that
    LIMIT counts. ``state_bytes`` is about how large its state may become. If it keeps any,
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
        self._key_places = [names.index(column.name) for column in plan.sink.key]
        stages, bound = self._program.stages, Bound(state_bytes)
        self._stores = [BoundedStore(bound) for _ in range(stages)]
        self._merging = Merging(present(), state_bytes // _WAITING) if stages else None
        self._until = until
        self._limit = limit
        self._feed = feed()

    def batches(self) -> Iterator[list[ResultRow]]:
        """Yield rows as they come; an empty batch at least twice a second."""
        sent = 0
        try:
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
        finally:
            self._feed.close()

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
        self._feed.hold(self._merging.enough)
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
