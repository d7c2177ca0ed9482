"""The generated segments between sources, stages and the sink; table functions over a batch.

Table functions take the rows of a batch and give more or fewer rows.
"""

from __future__ import annotations

import copy
from itertools import compress, repeat, zip_longest
from typing import TYPE_CHECKING, Any

from ksql.core import Headers, OutRecord, QueryFailed, Row
from ksql.core.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    WINDOWEND,
    WINDOWSTART,
    WindowedKeys,
)
from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
from ksql.exec.dataflow.program import Result, Results
from ksql.exec.dataflow.segment import Explosion, Segment, conjunction
from ksql.exec.dataflow.timestamps import extractor
from ksql.exec.expressions.compile import Projection, compile_predicate, compile_projection
from ksql.exec.expressions.errors import cause
from ksql.exec.operators.base import BadResult, LogError, Record
from ksql.exec.operators.keys import pack, unpack
from ksql.formats import EncodeError, topic_serde
from ksql.functions import instantiate_table
from ksql.sql.binder import bound as b
from ksql.sql.binder import type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.exec.dataflow.layout import Exit, StageInput
    from ksql.exec.dataflow.partitioning.keybytes import KeyBytes
    from ksql.formats import Registry
    from ksql.functions import Functions
    from ksql.sql.binder import Bound
    from ksql.sql.plan import Sink, TableCall


Keyed = tuple[bytes, Row | None]


class CompileContext:
    """The needs of compiling: the functions and the settings of the query."""

    def __init__(self, functions: Functions, settings: dict[str, str]) -> None:
        self.functions = functions
        self.settings = settings

    def projection(
        self, segment: Segment, outputs: Sequence[Bound], label: str, *, where: bool = True
    ) -> Projection:
        """Return the functions for a stretch; they give None for rows that its conditions drop."""
        names = segment.entry.shape.names
        condition = conjunction(segment.wheres) if where else None
        return compile_projection(names, condition, outputs, self.functions, self.settings, label)

    def exploder(self, segment: Segment) -> Exploder | None:
        """Return the table functions at the beginning of a stretch; None if there are none."""
        explosion = segment.entry.explosion
        if explosion is None:
            return None
        arguments = [arg for call in explosion.calls for arg in call.args]
        arguments_of = self.projection(explosion.segment, arguments, LABEL)
        return Exploder(explosion, arguments_of, self.functions)

    def predicate(self, segment: Segment, label: str) -> Callable[[Row, LogError], bool] | None:
        """Return the conditions of a stretch alone, if it has any."""
        condition = conjunction(segment.wheres)
        if condition is None:
            return None
        names = segment.entry.shape.names
        return compile_predicate(names, condition, self.functions, self.settings, label)


NULL_KEY = "a grouping or joining expression is NULL"
_PLAIN = frozenset((BOOLEAN, INTEGER, BIGINT, STRING, DATE, TIME, TIMESTAMP))


class KeyedInput:
    """Rows on their way to a stage, keyed.

    Rows whose key has a NULL are dropped (and logged), unless the input keeps them: the outer side
    of a stream's join. ``lanes`` is how many there are, 0 where nothing goes by time; ``moves``
    finds the lanes of rows that do not stay in theirs.
    """

    def __init__(
        self,
        stage_input: StageInput,
        code: CompileContext,
        lanes: int = 0,
        moves: KeyBytes | None = None,
    ) -> None:
        self.port = stage_input.port
        self.stage = stage_input.stage
        self.entry = stage_input.segment.entry
        self.table = stage_input.segment.table
        self.width = len(stage_input.key)
        self._null_keys = stage_input.null_keys
        #: Whether deletions pass that come without the row they delete.
        self.unknown = stage_input.unknown
        #: Whether of records that are dropped the time passes.
        self.ticks = stage_input.ticks
        self.lanes = lanes
        #: Whether rows change their lanes.
        self.moving = moves is not None
        self._moves = moves
        projection = code.projection(
            stage_input.segment, (*stage_input.key, *stage_input.carried), "PreProject"
        )
        self._run, self._batch = projection.run, projection.batch
        self._key = code.projection(
            stage_input.segment, stage_input.key, "PreProject", where=False
        ).run
        #: Whether equal key values have equal packed forms and the other way round.
        self.plain_key = all(type_of(part) in _PLAIN for part in stage_input.key)

    def keyed(self, row: Row, dead: bool, log: LogError) -> Keyed | None:
        """Return the packed key and what is carried; None if the row goes nowhere."""
        if dead and not self.table:
            return None
        keyed_row = None if dead else self.project(row, log)
        return self._deletion(row, log) if keyed_row is None and self.table else keyed_row

    def project(self, row: Row, log: LogError) -> Keyed | None:
        """Return the same for a row that is there.

        None if a condition drops it or its key has a NULL.
        """
        out = self._run(row, log)
        if out is None:
            return None
        key = out[: self.width]
        if None in key and not self._null_keys:
            log("groupby", NULL_KEY, row)
            return None
        return pack(key), out[self.width :]

    def projected(self, rows: Sequence[Row], log: LogError) -> list[Row | None]:
        """Return key columns, then what is carried, for each row; None as in ``project``."""
        projected = self._batch(rows, log)
        if self._null_keys:
            return projected
        width = self.width
        for index, out in enumerate(projected):
            if out is not None and (out[0] is None or (width > 1 and None in out[:width])):
                log("groupby", NULL_KEY, rows[index])
                projected[index] = None
        return projected

    def tick_key(self, row: Row, log: LogError) -> bytes:
        """Return the packed key of a record that is dropped.

        Its time is that of the key's partition; without key it stays in its own.
        """
        return pack(self._key(row, log) or (None,) * self.width)

    def lanes_of(
        self, packed: Sequence[bytes], keys: Sequence[Row], before: Sequence[int]
    ) -> Sequence[int]:
        """Return the lanes of rows with those keys that come from the given partitions or lanes.

        What has no key stays where it is; in a repartition topic it would be anywhere.
        """
        moves, count = self._moves, self.lanes
        if moves is None:
            return before if max(before, default=0) < count else [lane % count for lane in before]
        different = dict(zip(packed, keys, strict=True))
        bytes_of = moves.of([key[: moves.width] for key in different.values()])
        lanes = dict(zip(different, partitions_of(bytes_of, count), strict=True))
        chosen = [lanes[key] for key in packed]
        if self._null_keys or self.ticks:
            for index, key in enumerate(keys):
                if key[0] is None:
                    chosen[index] = before[index] % count
        return chosen

    def lanes_of_packed(self, packed: Sequence[bytes], before: Sequence[int]) -> Sequence[int]:
        """Return the same, of rows of which only the packed keys are there."""
        keys = [] if self._moves is None else [tuple(unpack(key)) for key in packed]
        return self.lanes_of(packed, keys, before)

    def laned(self, records: list[Record], before: Sequence[int]) -> list[Record]:
        """Return the records in the lanes of this input's stage; see ``lanes_of``."""
        lanes = self.lanes_of_packed([record.key for record in records], before)
        return [
            record if record.lane == lane else record._replace(lane=lane)
            for record, lane in zip(records, lanes, strict=True)
        ]

    def _deletion(self, row: Row, log: LogError) -> Keyed | None:
        key = self._key(row, log)
        if key is None or (None in key and not self._null_keys):
            return None
        return pack(key), None


class SinkOutput:
    """Rows on their way to the sink: projected; then encoded in batches."""

    def __init__(self, exit_: Exit, sink: Sink, code: CompileContext) -> None:
        segment = exit_.segment
        self.entry = segment.entry
        self.table = segment.table
        self.filtered = bool(segment.wheres)
        #: Whether the result may hold rows that the conditions do not let pass.
        self.leftovers = segment.leftovers
        self._exploder = code.exploder(segment)
        #: Whether a record may give several rows, or none; those without value give none.
        self.explodes = self._exploder is not None
        #: The rows that come here.
        self.shape = (
            segment.entry.explosion.segment.entry.shape
            if segment.entry.explosion
            else segment.entry.shape
        )
        self._width = len(exit_.key)
        self._rekeyed = exit_.rekeyed
        self._windowed = sink.window is not None
        of_window = (b.Column(WINDOWSTART, BIGINT), b.Column(WINDOWEND, BIGINT))
        extra = of_window if self._windowed else ()
        projection = code.projection(segment, (*exit_.key, *exit_.value, *extra), "Project")
        self._run, self._batch = projection.run, projection.batch
        self._test = code.predicate(segment, "Filter")
        self._key = code.projection(segment, (*exit_.bare, *extra), "Project", where=False).run
        self._values = self._width + len(exit_.value)
        self._extract = None
        if sink.timestamp is not None:
            columns = [*sink.key, *sink.value]
            index = [c.name for c in columns].index(sink.timestamp.name)
            self._extract = extractor(index, columns[index].type, sink.timestamp.pattern)

    def deleting(self) -> SinkOutput:
        """Return the same for rows that may be in the result although a condition drops them."""
        twin = copy.copy(self)
        twin.leftovers = True
        return twin

    def emit(self, row: Row, time: int, headers: Headers | None, log: LogError) -> Result | None:
        """Return a row's result, None if a condition drops it."""
        out = self._run(row, log)
        if out is None:
            return None
        if self._extract is not None:
            extracted = self._extract(out, log)
            if extracted is None:
                return None
            time = extracted
        bounds = (out[-2], out[-1]) if self._windowed else None
        return out[: self._width], out[self._width : self._values], time, headers, bounds

    def emit_all(
        self,
        rows: Sequence[Row],
        times: Sequence[int],
        headers: Sequence[Headers | None] | None,
        log: LogError,
    ) -> Results:
        """Return the results of many rows, without those that the conditions drop."""
        if self._exploder is not None:
            rows, places = self._exploder.rows(rows, log)
            times = [times[index] for index in places]
            headers = None if headers is None else [headers[index] for index in places]
        projected = self._batch(rows, log)
        if self._extract is not None:
            extract = self._extract
            new = [None if row is None else extract(row, log) for row in projected]
            projected = [
                None if time is None else row for row, time in zip(projected, new, strict=True)
            ]
            times = [-1 if time is None else time for time in new]
        if not all(projected):
            times = list(compress(times, projected))
            headers = None if headers is None else list(compress(headers, projected))
        width, end = self._width, self._values
        kept = [row for row in projected if row]
        return Results(
            [row[:width] for row in kept],
            [row[width:end] for row in kept],
            times,
            headers,
            [(row[-2], row[-1]) for row in kept] if self._windowed else None,
        )

    def without_key(self, emitted: Result) -> Result:
        """Take the key away, as the record came without one, unless PARTITION BY made it."""
        return emitted if self._rekeyed else (None, *emitted[1:])

    def delete(self, row: Row, time: int, headers: Headers | None, log: LogError) -> Result:
        """Return the record without value for the key that the row has."""
        out = self._key(row, log) or ()
        bounds = (out[-2], out[-1]) if self._windowed else None
        return out[: self._width], None, time, headers, bounds

    def passes(self, row: Row, log: LogError) -> bool:
        """Return whether the conditions let the row through."""
        return self._test is None or self._test(row, log)


class Unwritable(QueryFailed):
    """A result that the sink's format cannot hold: it must not get lost."""

    def __init__(self, error: EncodeError, result: BadResult) -> None:
        super().__init__(
            "Exception caught in process",
            detail=f"Unable to serialize record: {error.message}",
            entry=("serializer", error.message, result),
        )


class Encoder:
    """Result rows as records of the sink topic."""

    def __init__(self, sink: Sink, registry: Registry | None = None) -> None:
        topic = sink.topic or ""
        self.keys = topic_serde(sink.key_format, sink.key, "key", topic, registry)
        self.values = topic_serde(sink.value_format, sink.value, "value", topic, registry)
        self._windowed = None if sink.window is None else WindowedKeys(sink.window.size_ms)
        self._single = len(sink.key) <= 1

    def __call__(self, rows: Results) -> list[OutRecord]:
        """Return the records.

        Raises: Unwritable for a row that the format cannot write.
        """
        keys = None
        try:
            keys = self.keys.encode_many(self.key_rows(rows.keys))
            values = self.values.encode_many(rows.values)
        except EncodeError as error:
            if len(rows.keys) == 1:
                at_key = keys is None
                row = rows.keys[0] if at_key else rows.values[0]
                raise Unwritable(error, BadResult("key" if at_key else "value", row)) from error
            single = map(Results.of, ([row] for row in rows.each()))
            return [record for row in single for record in self(row)]
        if self._windowed is not None and rows.bounds is not None:
            join, bounds = self._windowed.join, rows.bounds
            keys = [
                key if key is None or one is None else join(key, one)
                for key, one in zip(keys, bounds, strict=True)
            ]
        headers = repeat(None) if rows.headers is None else rows.headers
        return list(zip(keys, values, rows.times, headers))  # noqa: B905 - may repeat

    def key_rows(self, keys: Sequence[Row | None]) -> Sequence[Row | None]:
        """Return the keys to write: a single NULL column is no key; several may all be NULL."""
        if self._single:
            return [key if key and key[0] is not None else None for key in keys]
        return [key or None for key in keys]


LABEL = "FlatMap"


class Exploder:
    """Runs the calls of a step; ``projection`` gives their arguments, or None for rows it drops.

    Calls are zipped: the shorter lists end in NULLs. A call that fails gives no values and is
    logged.
    """

    def __init__(self, explosion: Explosion, projection: Projection, functions: Functions) -> None:
        self._arguments = projection.batch
        self._calls: list[tuple[str, Callable[..., list[Any]], slice]] = []
        start = 0
        for call in explosion.calls:
            end = start + len(call.args)
            self._calls.append((call.function, _rows(call, functions), slice(start, end)))
            start = end

    def rows(self, rows: Sequence[Row], log: LogError) -> tuple[list[Row], list[int]]:
        """Return the rows that follow, and for each the place of the row from which it does."""
        out: list[Row] = []
        places: list[int] = []
        arguments = self._arguments(rows, log)
        for index, (row, args) in enumerate(zip(rows, arguments, strict=True)):
            if args is None:
                continue
            lists = [self._called(call, args, row, log) for call in self._calls]
            exploded = [(*row, *values) for values in zip_longest(*lists)]
            out += exploded
            places += [index] * len(exploded)
        return out, places

    @staticmethod
    def _called(
        call: tuple[str, Callable[..., list[Any]], slice], args: Row, row: Row, log: LogError
    ) -> list[Any]:
        name, function, own = call
        try:
            return function(*args[own])
        except Exception as error:  # noqa: BLE001 - whatever a function raises is logged
            log(LABEL, f"Table function {name} threw an exception: {cause(error)}", row)
            return []


def _rows(call: TableCall, functions: Functions) -> Callable[..., list[Any]]:
    function = functions.get(call.function)
    return instantiate_table(function, call.overload, [type_of(arg) for arg in call.args])
