"""Turns a batch of a stream into the keyed rows of a stage in one generated loop.

The other road (``SourceIngest.keyed``) makes a source's row, a projected row, a key and a record of
each. It is there for unusual plans and batches, as in ``fused``, with the same conditions. A batch
is refused before anything of it was evaluated or logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ormsgpack

from ksql.core import indent, tuple_of
from ksql.core.types import STRING
from ksql.exec.codegen.fused import COLUMNS, BatchDecoder, Decoded, body_of, cells_of, is_ordinary
from ksql.exec.dataflow.stage_inputs import NULL_KEY, CompileContext, KeyedInput
from ksql.exec.operators import keys
from ksql.exec.operators.base import LogError, Record
from ksql.exec.operators.keyed_batches import KeyedBatch, longs
from ksql.sql.binder import bound as b

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ksql.exec.dataflow.layout import StageInput
    from ksql.exec.dataflow.program import RawBatch
    from ksql.exec.dataflow.reading import Reader
    from ksql.exec.dataflow.timestamps import FutureTimestamps
    from ksql.exec.expressions.compile import Body
    from ksql.exec.operators.order import SequenceKeys

_LABEL = "PreProject"
_LOOP = """\
def run(values, keys, key_rows, times, partitions, offsets, log):
    out_keys, out_places, without_key = [], [], []
    add_key, add_place = out_keys.append, out_places.append
{begin}
    for {variables}, in zip({columns}):
{lines}
    return out_keys, {result}, out_places, without_key
"""
_HEADS = tuple(ormsgpack.packb(("x" * length,))[:-length] for length in range(1, 256))
"""What goes before a text of 1, 2, .. bytes in the packed key that consists of it."""
_TEXT = "(HEADS[len({0}) - 1] + {0} if 0 < len({0}) < 256 else pack(({1},)))"
_NO_KEY = keys.pack((None,))
_KNOWN = {"HEADS": _HEADS, "pack": keys.pack, "pack_plain": ormsgpack.packb}


class Keying:
    """The loop of one stage input that begins at a source."""

    def __init__(
        self,
        decoder: BatchDecoder,
        stage_input: KeyedInput,
        topic: int,
        run: Callable[..., Any],
        *,
        drops: bool,
    ) -> None:
        """Take the loop; ``drops``: it gives the places of the rows, as it may leave some out."""
        self._decoder = decoder
        self._stage_input = stage_input
        self._topic = topic
        self._run = run
        self._drops = drops

    def keyed(
        self,
        batch: RawBatch,
        sequence_keys: SequenceKeys,
        log: LogError,
        ahead: FutureTimestamps | None,
    ) -> KeyedBatch | Sequence[Record] | None:
        """Return the batch's rows on their way to the stage; None if the batch is not ordinary."""
        stage_input, partitions = self._stage_input, batch.partitions
        partition = partitions[0]
        if partitions.count(partition) != len(partitions):
            return None
        if ahead is not None and ahead.is_far(batch.timestamps):
            return None
        decoded = self._decoder.decoded(batch, log)
        if decoded is None:
            return None
        log_row = self._decoder.row_logger(decoded, log)
        lane = partition % stage_input.lanes if stage_input.lanes and not stage_input.moving else 0
        sequence_key = sequence_keys.of(stage_input.port, decoded.partitions, decoded.times)
        packed, columns, places, without_key = self._run(*decoded, log_row)
        for index in without_key:
            log_row("groupby", NULL_KEY, index)
        times, offsets = longs(decoded.times), longs(decoded.offsets)
        turns = times if sequence_key is decoded.times else longs(sequence_key)
        if self._drops and len(places) < len(decoded.times):
            kept = longs(places)
            times, turns, offsets = times[kept], turns[kept], offsets[kept]
        lanes = self._lanes(packed) if stage_input.moving else lane
        head = stage_input.port, self._topic, partition
        keyed = KeyedBatch(*head, lanes, packed, times, turns, offsets, columns)
        if not (without_key and stage_input.ticks):
            return keyed
        return [*keyed, *self._ticks(decoded, partition, sequence_key, without_key)]

    def _ticks(
        self, decoded: Decoded, partition: int, sequence_keys: Sequence[int], places: Sequence[int]
    ) -> Iterator[Record]:
        """Return records without row for those without key: their times pass."""
        stage_input, times, offsets = self._stage_input, decoded.times, decoded.offsets
        lane = partition % stage_input.lanes if stage_input.lanes else 0
        for i in places:
            origin = self._topic, partition, offsets[i]
            yield Record(
                stage_input.port,
                _NO_KEY,
                None,
                times[i],
                *origin,
                sequence_key=sequence_keys[i],
                lane=lane,
            )

    def _lanes(self, packed: Sequence[bytes]) -> list[int]:
        different = list(dict.fromkeys(packed))
        values = [tuple(keys.unpack(key)) for key in different]
        lanes = self._stage_input.lanes_of(different, values, ())
        return list(map(dict(zip(different, lanes, strict=True)).__getitem__, packed))


def keying(
    reader: Reader, keyed: KeyedInput, stage_input: StageInput, topic: int, code: CompileContext
) -> Keying | None:
    """Return the loop for an input that begins at a source; None if it needs the other road."""
    if not is_ordinary(reader.source, stage_input.segment) or (
        keyed.moving and stage_input.null_keys
    ):
        return None
    cells = cells_of(reader)
    held = _held_key(reader, stage_input, cells)
    outputs = stage_input.carried if held else (*stage_input.key, *stage_input.carried)
    body = body_of(cells, stage_input.segment, outputs, code)
    width = 0 if held else len(stage_input.key)
    tests = (
        [] if stage_input.null_keys else [f"{v} is None" for v in body.values[:width] if _may_be(v)]
    )
    if keyed.ticks and (stage_input.segment.wheres or (tests and keyed.width > 1)):
        return None  # of what is dropped the time passes, under the key that it has
    pack = "pack_plain" if keyed.plain_key else "pack"
    key = held or f"{pack}({tuple_of(body.values[:width])})"
    drops = bool(tests or stage_input.segment.wheres)
    carried = body.values[width:]
    keep = [f"add_key({key})", *(f"add_{n}({value})" for n, value in enumerate(carried))]
    keep += ["add_place(i)"] if drops else []
    if tests:
        keep = [f"if {' or '.join(tests)}:", "    without_key.append(i)", "else:", *indent(keep)]
    needed = {"v", *(cells[column][0] for column in body.columns)}
    needed |= {"k"} if held else set()
    needed |= {"i"} if drops or body.reports else set()
    decoder = BatchDecoder(reader, key_rows=any(cells[column][0] == "q" for column in body.columns))
    run = _compiled(body, keep, needed, len(carried))
    return Keying(decoder, keyed, topic, run, drops=drops)


def _held_key(reader: Reader, stage_input: StageInput, cells: Sequence[str]) -> str:
    """Return the packed key's code where it is the text of the record's key; else empty."""
    names = stage_input.segment.entry.shape.names
    match stage_input.key:
        case (b.Column(name, type_),) if type_ == STRING and reader.keys.plain is not None:
            cell = cells[names.index(name)]
            if cell == reader.keys.plain.format("k"):
                return _TEXT.format("k", cell)
    return ""


def _may_be(value: str) -> bool:
    """Return whether a value may be NULL, as far as its code shows."""
    return value.isidentifier()


def _compiled(body: Body, keep: Sequence[str], needed: set[str], width: int) -> Callable[..., Any]:
    first, *rest = keep
    begin = [f"out_{n} = []; add_{n} = out_{n}.append" for n in range(width)]
    text = _LOOP.format(
        begin="\n".join(indent(begin)),
        result=tuple_of([f"out_{n}" for n in range(width)]),
        variables=", ".join(sorted(needed)),
        columns=", ".join(COLUMNS[name] for name in sorted(needed)),
        lines="\n".join(indent([*body.lines(["continue"], first), *rest], 2)),
    )
    source = [*body.code.prologue, *text.splitlines()]
    run: Callable[..., Any] = body.executed(source, _LABEL, _KNOWN)["run"]
    return run
