"""The processor of a join, or of several under one key, made from a stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.exec.dataflow.chain import KeyedJoin, synthetic, window_columns
from ksql.exec.operators.chain import ChainProcessor, Link
from ksql.exec.operators.joining.join_layout import Ending, Side
from ksql.exec.operators.joining.joins import JoinProcessor
from ksql.exec.operators.joining.streams import StreamJoinProcessor, Within
from ksql.exec.operators.joining.tablejoin import TableJoinProcessor
from ksql.sql.plan.nodes import StreamStreamJoin, StreamTableJoin, TableTableJoin

if TYPE_CHECKING:
    from ksql.exec.dataflow.layout import Stage
    from ksql.exec.operators.base import KeyOrder, Paused
    from ksql.sql.plan.nodes import JoinWindow

DAY_MS = 24 * 3_600_000
NO_PORT = -1
"""The port of rows that a join hands to the next one without an exchange."""


def joining(stage: Stage, order: KeyOrder) -> Paused:
    """Return the processor of a stage that joins; ``order`` is that of its keys."""
    assert isinstance(stage.node, KeyedJoin)  # noqa: S101 - narrows the type for the only caller
    joins = (*stage.before, stage.node)
    sides = [Side(stage_input.port, stage_input.parts) for stage_input in stage.stage_inputs]
    left, *rights = sides
    links = []
    for join, right in zip(joins, rights, strict=True):
        timed = isinstance(join, TableTableJoin) and left.port == NO_PORT
        links.append(
            Link(
                _processor(join, left, right, order, timed=timed),
                frozenset((left.port, right.port)),
                left.width,
                join.kind in ("LEFT", "FULL"),
                timed,
            )
        )
        left = Side(NO_PORT, (*left.parts, *right.parts))
    return links[0].processor if len(links) == 1 else ChainProcessor(tuple(links))


def _processor(join: KeyedJoin, left: Side, right: Side, order: KeyOrder, *, timed: bool) -> Paused:
    ending = Ending(key=synthetic(join), windowed=bool(window_columns(join)))
    match join:
        case StreamTableJoin():
            return JoinProcessor(join.kind == "LEFT", right, ending)
        case StreamStreamJoin(kind=kind):
            outer = kind in ("LEFT", "FULL"), kind in ("RIGHT", "FULL")
            return StreamJoinProcessor(left, right, *outer, _within(join.window), ending, order)
        case TableTableJoin(kind=kind):
            kept = kind in ("LEFT", "FULL"), kind in ("RIGHT", "FULL")
            return TableJoinProcessor(left, right, *kept, ending, timed)


def _within(window: JoinWindow) -> Within:
    """Return the window; without GRACE PERIOD the grace is what twice ``before`` leaves of a day.

    Source: Kafka Streams' ``JoinWindows.of``.
    """
    eager = window.grace_ms is None
    grace = max(DAY_MS - 2 * window.before_ms, 0) if window.grace_ms is None else window.grace_ms
    return Within(window.before_ms, window.after_ms, grace, eager)
