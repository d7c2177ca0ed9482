"""From a batch of a stream to the keyed rows of a stage in one generated loop.

The other road (``SourceIngest.keyed``) makes a source's row, a projected row, a key and a record of
each. It is there for what is not ordinary, as in ``fused``: the conditions for a plan and for a
batch are the same, and a batch is refused before anything of it was evaluated or logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ormsgpack

from ksql.analysis import bound as b
from ksql.base.codegen import indent, tuple_of
from ksql.dataflow.arms import NULL_KEY
from ksql.dataflow.fused import COLUMNS, Intake, body_of, cells_of, is_ordinary
from ksql.processors import keys
from ksql.processors.base import Record
from ksql.processors.keyed import Keyed
from ksql.types.model import STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ksql.compile.compile import Body
    from ksql.dataflow.ahead import Ahead
    from ksql.dataflow.arms import Code, KeyedArm
    from ksql.dataflow.fused import Decoded
    from ksql.dataflow.layout import Arm
    from ksql.dataflow.program import RawBatch
    from ksql.dataflow.reading import Reader
    from ksql.processors.base import LogError
    from ksql.processors.order import Turns

_LABEL = "PreProject"
_LOOP = """\
def run(values, keys, key_rows, times, partitions, offsets, turns, lane, log):
    rows, without_key = [], []
    add = rows.append
    for {variables}, in zip({columns}):
{lines}
    return rows, without_key
"""
_COLUMNS = {**COLUMNS, "u": "turns"}
_HEADS = tuple(ormsgpack.packb(("x" * length,))[:-length] for length in range(1, 256))
"""What goes before a text of 1, 2, .. bytes in the packed key that consists of it."""
_TEXT = "(HEADS[len({0}) - 1] + {0} if 0 < len({0}) < 256 else pack(({1},)))"
_NO_KEY = keys.pack((None,))
_KNOWN = {"HEADS": _HEADS, "pack": keys.pack, "pack_plain": ormsgpack.packb}


class Keying:
    """The loop of one arm that begins at a source."""

    def __init__(self, intake: Intake, arm: KeyedArm, topic: int, run: Callable[..., Any]) -> None:
        self._intake = intake
        self._arm = arm
        self._topic = topic
        self._run = run

    def keyed(
        self, batch: RawBatch, turns: Turns, log: LogError, ahead: Ahead | None
    ) -> Keyed | Sequence[Record] | None:
        """Return the batch's rows on their way to the stage; None if the batch is not ordinary."""
        arm, partitions = self._arm, batch.partitions
        partition = partitions[0]
        if partitions.count(partition) != len(partitions):
            return None
        if ahead is not None and ahead.is_far(batch.timestamps):
            return None
        decoded = self._intake.decoded(batch, log)
        if decoded is None:
            return None
        log_row = self._intake.row_logger(decoded, log)
        lane = partition % arm.lanes if arm.lanes and not arm.moving else 0
        turn = turns.of(arm.port, decoded.partitions, decoded.times)
        rows, without_key = self._run(*decoded, turn, lane, log_row)
        for index in without_key:
            log_row("groupby", NULL_KEY, index)
        lane_of_all = None if arm.moving else lane
        rows = self._moved(rows) if arm.moving else rows
        keyed = Keyed(arm.port, self._topic, partition, lane_of_all, rows)
        if not (without_key and arm.ticks):
            return keyed
        return [*keyed, *self._ticks(decoded, partition, turn, without_key)]

    def _ticks(
        self, decoded: Decoded, partition: int, turns: Sequence[int], places: Sequence[int]
    ) -> Iterator[Record]:
        """Return records without row for those without key: their times pass."""
        arm, times, offsets = self._arm, decoded.times, decoded.offsets
        lane = partition % arm.lanes if arm.lanes else 0
        for i in places:
            origin = self._topic, partition, offsets[i]
            yield Record(arm.port, _NO_KEY, None, times[i], *origin, turn=turns[i], lane=lane)

    def _moved(self, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return the rows in the lanes of their keys."""
        packed = list(dict.fromkeys(row[0] for row in rows))
        values = [tuple(keys.unpack(key)) for key in packed]
        lanes = dict(zip(packed, self._arm.lanes_of(packed, values, ()), strict=True))
        return [(row[0], lanes[row[0]], *row[2:]) for row in rows]


def keying(reader: Reader, keyed: KeyedArm, arm: Arm, topic: int, code: Code) -> Keying | None:
    """Return the loop for an arm that begins at a source; None if it needs the other road."""
    if not is_ordinary(reader.source, arm.flow) or (keyed.moving and arm.null_keys):
        return None
    cells = cells_of(reader)
    held = _held_key(reader, arm, cells)
    outputs = arm.carried if held else (*arm.key, *arm.carried)
    body = body_of(cells, arm.flow, outputs, code)
    width = 0 if held else len(arm.key)
    tests = [] if arm.null_keys else [f"{v} is None" for v in body.values[:width] if _may_be(v)]
    if keyed.ticks and (arm.flow.wheres or (tests and keyed.width > 1)):
        return None  # of what is dropped the time passes, under the key that it has
    pack = "pack_plain" if keyed.plain_key else "pack"
    key = held or f"{pack}({tuple_of(body.values[:width])})"
    keep = [f"add({tuple_of([key, 'lane', 't', 'u', 'o', *body.values[width:]])})"]
    if tests:
        keep = [f"if {' or '.join(tests)}:", "    without_key.append(i)", "else:", *indent(keep)]
    needed = {"v", "t", "u", "o", *(cells[column][0] for column in body.columns)}
    needed |= {"k"} if held else set()
    needed |= {"i"} if tests or body.reports else set()
    intake = Intake(reader, key_rows=any(cells[column][0] == "q" for column in body.columns))
    return Keying(intake, keyed, topic, _compiled(body, keep, needed))


def _held_key(reader: Reader, arm: Arm, cells: Sequence[str]) -> str:
    """Return the packed key's code where it is the text of the record's key; else empty."""
    names = arm.flow.entry.shape.names
    match arm.key:
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
