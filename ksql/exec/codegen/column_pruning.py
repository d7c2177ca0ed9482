"""Leaves out the columns that nobody reads any more, before an exchange.

A stream that meets a table is not kept: of its rows only those columns travel that something after
the join reads. Rows that a stage stores keep all their columns, as a later version of the query may
read other ones.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING

from ksql.sql.binder import bound as b
from ksql.sql.binder import columns
from ksql.sql.plan import StreamTableJoin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.exec.dataflow.layout import Layout
    from ksql.exec.dataflow.segment import RowShape, Segment
    from ksql.sql.binder import Bound


def narrowed(cut: Layout) -> Layout:
    """Leave out what is not read; the last stage first, as it decides what the others need."""
    for number in reversed(range(len(cut.stages))):
        cut = _narrowed_at(cut, number)
    return cut


def _narrowed_at(cut: Layout, number: int) -> Layout:
    stage, behind = cut.stages[number], list(_flows(cut, number))
    if not all(isinstance(join, StreamTableJoin) for join in (*stage.before, stage.node)):
        return cut
    if any(segment.entry.explosion is not None for segment, _ in behind):
        return cut
    used = {stage.shape.names[index] for index in stage.shape.keys}
    for segment, outputs in behind:
        for expr in (*segment.wheres, *outputs):
            used.update(column.name for column in columns(expr))
    carried = stage.stage_inputs[0].carried
    keep = [
        name in used or not isinstance(expr, b.Column)  # what may fail is evaluated all the same
        for name, expr in zip(stage.shape.names[: len(carried)], carried, strict=True)
    ]
    return cut if all(keep) else _without(cut, number, keep)


def _flows(cut: Layout, number: int) -> Iterator[tuple[Segment, Sequence[Bound]]]:
    """Return the flows that begin after a stage, and what is computed at their ends."""
    ends = [
        (stage_input.segment, (*stage_input.key, *stage_input.carried))
        for stage_input in cut.stage_inputs
    ]
    ends.append((cut.exit.segment, (*cut.exit.key, *cut.exit.value)))
    for segment, outputs in ends:
        if (segment.entry.kind, segment.entry.index) == ("stage", number):
            yield segment, outputs


def _without(cut: Layout, number: int, keep: Sequence[bool]) -> Layout:
    """Return the plan with only those columns of the stream that a stage joins."""
    stage = cut.stages[number]
    stream, *tables = stage.stage_inputs
    kept = tuple(compress(stream.carried, keep))
    stream = replace(stream, carried=kept, parts=(len(kept),))
    rest = len(stage.shape.columns) - len(keep)
    shape = _shape(stage.shape, [*keep, *[True] * rest])
    parts = tuple(part for stage_input in (stream, *tables) for part in stage_input.parts)
    shape = replace(shape, parts=parts)
    stages = list(cut.stages)
    stages[number] = replace(stage, stage_inputs=(stream, *tables), shape=shape)

    def moved(segment: Segment) -> Segment:
        if (segment.entry.kind, segment.entry.index) != ("stage", number):
            return segment
        return replace(segment, entry=replace(segment.entry, shape=shape))

    for index, staged in enumerate(stages):
        stage_inputs = tuple(
            replace(stage_input, segment=moved(stage_input.segment))
            for stage_input in staged.stage_inputs
        )
        stages[index] = replace(staged, stage_inputs=stage_inputs)
    return replace(
        cut, stages=tuple(stages), exit=replace(cut.exit, segment=moved(cut.exit.segment))
    )


def _shape(shape: RowShape, keep: Sequence[bool]) -> RowShape:
    places = {old: new for new, old in enumerate(compress(range(len(keep)), keep))}
    return replace(
        shape,
        columns=tuple(compress(shape.columns, keep)),
        times=tuple(places[index] for index in shape.times),
        keys=tuple(places[index] for index in shape.keys),
    )
