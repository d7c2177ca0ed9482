"""The columns that nobody reads any more, left out before an exchange.

A stream that meets a table is not kept: of its rows only those columns travel that something behind
the join reads. What a stage stores keeps all its columns, as a later version of the query may read
others.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING

from ksql.analysis import bound as b
from ksql.analysis.trees import columns
from ksql.plan.nodes import StreamTableJoin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.analysis.bound import Bound
    from ksql.dataflow.flow import Flow, RowShape
    from ksql.dataflow.layout import Layout


def narrowed(cut: Layout) -> Layout:
    """Leave out what is not read; the last stage first, as it decides what the others need."""
    for number in reversed(range(len(cut.stages))):
        cut = _narrowed_at(cut, number)
    return cut


def _narrowed_at(cut: Layout, number: int) -> Layout:
    stage, behind = cut.stages[number], list(_flows(cut, number))
    if not all(isinstance(join, StreamTableJoin) for join in (*stage.before, stage.node)):
        return cut
    if any(flow.entry.explosion is not None for flow, _ in behind):
        return cut
    used = {stage.shape.names[index] for index in stage.shape.keys}
    for flow, outputs in behind:
        for expr in (*flow.wheres, *outputs):
            used.update(column.name for column in columns(expr))
    carried = stage.arms[0].carried
    keep = [
        name in used or not isinstance(expr, b.Column)  # what may fail is evaluated all the same
        for name, expr in zip(stage.shape.names[: len(carried)], carried, strict=True)
    ]
    return cut if all(keep) else _without(cut, number, keep)


def _flows(cut: Layout, number: int) -> Iterator[tuple[Flow, Sequence[Bound]]]:
    """Return the flows that begin behind a stage, and what is computed at their ends."""
    ends = [(arm.flow, (*arm.key, *arm.carried)) for arm in cut.arms]
    ends.append((cut.exit.flow, (*cut.exit.key, *cut.exit.value)))
    for flow, outputs in ends:
        if (flow.entry.kind, flow.entry.index) == ("stage", number):
            yield flow, outputs


def _without(cut: Layout, number: int, keep: Sequence[bool]) -> Layout:
    """Return the plan with only those columns of the stream that a stage joins."""
    stage = cut.stages[number]
    stream, *tables = stage.arms
    kept = tuple(compress(stream.carried, keep))
    stream = replace(stream, carried=kept, parts=(len(kept),))
    rest = len(stage.shape.columns) - len(keep)
    shape = _shape(stage.shape, [*keep, *[True] * rest])
    parts = tuple(part for arm in (stream, *tables) for part in arm.parts)
    shape = replace(shape, parts=parts)
    stages = list(cut.stages)
    stages[number] = replace(stage, arms=(stream, *tables), shape=shape)

    def moved(flow: Flow) -> Flow:
        if (flow.entry.kind, flow.entry.index) != ("stage", number):
            return flow
        return replace(flow, entry=replace(flow.entry, shape=shape))

    for index, staged in enumerate(stages):
        arms = tuple(replace(arm, flow=moved(arm.flow)) for arm in staged.arms)
        stages[index] = replace(staged, arms=arms)
    return replace(cut, stages=tuple(stages), exit=replace(cut.exit, flow=moved(cut.exit.flow)))


def _shape(shape: RowShape, keep: Sequence[bool]) -> RowShape:
    places = {old: new for new, old in enumerate(compress(range(len(keep)), keep))}
    return replace(
        shape,
        columns=tuple(compress(shape.columns, keep)),
        times=tuple(places[index] for index in shape.times),
        keys=tuple(places[index] for index in shape.keys),
    )
