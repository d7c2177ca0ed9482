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
from ksql.exec.codegen.fused import COLUMNS, BatchDecoder, body_of, cells_of, is_ordinary
from ksql.exec.dataflow.stage_inputs import NULL_KEY
from ksql.exec.operators import keys
from ksql.exec.operators.base import Record
from ksql.exec.operators.order import KeyedBatch
from ksql.sql.binder import bound as b

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ksql.exec.codegen.fused import Decoded
    from ksql.exec.dataflow.future_timestamps import FutureTimestamps
    from ksql.exec.dataflow.layout import StageInput
    from ksql.exec.dataflow.program import RawBatch
    from ksql.exec.dataflow.reading import Reader
    from ksql.exec.dataflow.stage_inputs import CompileContext, KeyedInput
    from ksql.exec.expressions.compile import Body
    from ksql.exec.operators.base import LogError
    from ksql.exec.operators.order import SequenceKeys

_LABEL = "PreProject"
_LOOP = """\
def run(values, keys, key_rows, times, partitions, offsets, sequence_keys, lane, log):
    rows, without_key = [], []
    add = rows.append
    for {variables}, in zip({columns}):
{lines}
    return rows, without_key
"""
_COLUMNS = {**COLUMNS, "u": "sequence_keys"}
_HEADS = tuple(ormsgpack.packb(("x" * length,))[:-length] for length in range(1, 256))
"""What goes before a text of 1, 2, .. bytes in the packed key that consists of it."""
_TEXT = "(HEADS[len({0}) - 1] + {0} if 0 < len({0}) < 256 else pack(({1},)))"
_NO_KEY = keys.pack((None,))
_KNOWN = {"HEADS": _HEADS, "pack": keys.pack, "pack_plain": ormsgpack.packb}


class Keying:
    """The loop of one stage input that begins at a source."""

    def __init__(
        self, decoder: BatchDecoder, stage_input: KeyedInput, topic: int, run: Callable[..., Any]
    ) -> None:
        self._decoder = decoder
        self._stage_input = stage_input
        self._topic = topic
        self._run = run

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
        rows, without_key = self._run(*decoded, sequence_key, lane, log_row)
        for index in without_key:
            log_row("groupby", NULL_KEY, index)
        lane_of_all = None if stage_input.moving else lane
        rows = self._moved(rows) if stage_input.moving else rows
        keyed = KeyedBatch(stage_input.port, self._topic, partition, lane_of_all, rows)
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

    def _moved(self, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return the rows in the lanes of their keys."""
        packed = list(dict.fromkeys(row[0] for row in rows))
        values = [tuple(keys.unpack(key)) for key in packed]
        lanes = dict(zip(packed, self._stage_input.lanes_of(packed, values, ()), strict=True))
        return [(row[0], lanes[row[0]], *row[2:]) for row in rows]


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
    keep = [f"add({tuple_of([key, 'lane', 't', 'u', 'o', *body.values[width:]])})"]
    if tests:
        keep = [f"if {' or '.join(tests)}:", "    without_key.append(i)", "else:", *indent(keep)]
    needed = {"v", "t", "u", "o", *(cells[column][0] for column in body.columns)}
    needed |= {"k"} if held else set()
    needed |= {"i"} if tests or body.reports else set()
    decoder = BatchDecoder(reader, key_rows=any(cells[column][0] == "q" for column in body.columns))
    return Keying(decoder, keyed, topic, _compiled(body, keep, needed))


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


def _compiled(body: Body, keep: Sequence[str], needed: set[str]) -> Callable[..., Any]:
    first, *rest = keep
    text = _LOOP.format(
        variables=", ".join(sorted(needed)),
        columns=", ".join(_COLUMNS[name] for name in sorted(needed)),
        lines="\n".join(indent([*body.lines(["continue"], first), *rest], 2)),
    )
    source = [*body.code.prologue, *text.splitlines()]
    run: Callable[..., Any] = body.executed(source, _LABEL, _KNOWN)["run"]
    return run
