"""The description of a running plan: what it reads, which steps keep state, what it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.exec.dataflow.foreign import ForeignStep
from ksql.exec.dataflow.layout import Layout, Stage, Stateful, layout
from ksql.exec.dataflow.partitioning.key_routing import moves
from ksql.exec.dataflow.partitioning.placement import UNORDERED
from ksql.exec.dataflow.partitioning.repartition import regroups, sending
from ksql.exec.dataflow.stage_inputs import CompileContext
from ksql.exec.dataflow.stages import combining, slots_of
from ksql.functions import OverloadGone, UnknownFunction
from ksql.sql.binder import sql_of
from ksql.sql.plan import (
    Aggregate,
    EmitFinal,
    QueryPlan,
    Source,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
    follows_time,
)
from ksql.sql.plan.walk import nodes
from ksql.sql.upgrade import hazards, other_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.functions import Functions


def topology(plan: QueryPlan, functions: Functions) -> str:
    """Return the steps of a plan on Spark, a line each.

    Below a stage what flows in and what it keeps.

    Example:
        stage 0: AGGREGATE, over 2 buckets
          from source 0 by K, combined by group before the exchange
          state: slot 0 COUNT()
    """
    return "\n".join(_lines(plan, layout(plan.sink), functions))


def changes_sent(plan: QueryPlan) -> str | None:
    """Return how changes of a table are sent to an aggregate, if the plan has one."""
    regrouped = any(
        regroups(stage, stage_input)
        for stage in layout(plan.sink).stages
        for stage_input in stage.stage_inputs
    )
    return sending(plan) if regrouped else None


def time_counted(plan: QueryPlan) -> str | None:
    """Say for what stream time is counted; None where nothing goes by it."""
    if plan.lanes:
        return f"of each of {plan.lanes} partitions, as in Kafka Streams"
    return "of each bucket" if follows_time(plan.sink) else None


def stages(plan: QueryPlan) -> list[str]:
    """Return the names of the stages with state, in order."""
    return [_steps(stage) for stage in layout(plan.sink).stages]


def _lines(plan: QueryPlan, program_layout: Layout, functions: Functions) -> Iterator[str]:
    for number, source in enumerate(program_layout.sources):
        yield f"source {number}: topic {source.topic} ({source.kind} {source.name})"
    counted = time_counted(plan)
    if counted is not None:
        yield f"stream time: {counted}"
    for number, stage in enumerate(program_layout.stages):
        yield f"stage {number}: {_steps(stage)}, over {plan.buckets} buckets"
        for stage_input in stage.stage_inputs:
            entry, key = stage_input.segment.entry, ", ".join(map(sql_of, stage_input.key))
            more = f"; {sending(plan)}" if regroups(stage, stage_input) else ""
            if plan.lanes and moves(program_layout, stage, stage_input) is not None:
                more += ", repartitioned"
            if entry.kind == "source":
                more += _combining(plan, stage, functions)
            yield f"  from {entry.kind} {entry.index} by {key}{more}"
        for step in (*stage.before, stage.node):
            yield f"  state: {_state(step)}"
    entry = program_layout.exit.segment.entry
    target = f"topic {plan.sink.topic}" if plan.sink.topic else "the client"
    yield f"sink: {target}, from {entry.kind} {entry.index}{_emission(plan, program_layout)}"
    yield from _placing(plan)
    if plan.sink.topic and plan.sink.window is not None and not plan.sink.gathered:
        yield "  the windows of a key lie in several partitions, as an earlier version placed them"
    yield from _other_code(plan, functions)


def _other_code(plan: QueryPlan, functions: Functions) -> Iterator[str]:
    """Say which functions have other code than the query was made with, and what that means."""
    others = other_code(plan, functions)
    for name in sorted(others):
        yield f"function {name}: its code is another one than the query was made with"
    yield from (f"  {reason}" for reason in hazards(plan, others))


def _placing(plan: QueryPlan) -> Iterator[str]:
    """Say how results get to their partitions, where that is worth a word."""
    if not plan.sink.topic:
        return
    match plan.placement:
        case "moved":
            yield "  exchanged by the partition of the result, in the order of time"
        case "":
            yield f"  written {UNORDERED}"
        case "kept" | "keyed":
            return


def _combining(plan: QueryPlan, stage: Stage, functions: Functions) -> str:
    """Return whether records of a source are combined; nothing where no aggregate takes them."""
    node = stage.node
    if not isinstance(node, Aggregate):
        return ""
    try:
        slots = slots_of(node, CompileContext(functions, dict(plan.settings)))
    except (UnknownFunction, OverloadGone):  # such a query does not run
        return ""
    return f", {combining(plan, node, slots).words}"


def _steps(stage: Stage) -> str:
    return ", then ".join(map(_name, (*stage.before, stage.node)))


def _name(node: Stateful) -> str:
    match node:
        case Aggregate():
            return "AGGREGATE"
        case StreamTableJoin():
            return "STREAM-TABLE JOIN"
        case StreamStreamJoin():
            return "STREAM-STREAM JOIN"
        case TableTableJoin():
            return "TABLE-TABLE JOIN"
        case ForeignStep(keeps=keeps):
            return f"FOREIGN-KEY JOIN, {keeps}"
        case Source():
            return f"TABLE {node.name}"


def _state(node: Stateful) -> str:
    match node:
        case Aggregate():
            slots = ", ".join(f"slot {fold.slot} {fold.name}" for fold in node.folds)
            window = node.window
            kinds = "sessions" if window and window.kind == "SESSION" else "windows"
            kept = f"; {kinds} are kept for {window.retention_ms} ms" if window else ""
            if node.ttl_ms:
                kept = f"; rows are kept for {node.ttl_ms} ms after their last update"
            return (slots or "the keys") + kept
        case StreamTableJoin():
            return "the table's rows by key"
        case StreamStreamJoin():
            return "both sides' records by key and time"
        case TableTableJoin():
            return "both tables' rows by key"
        case ForeignStep(keeps="references"):
            return "the foreign key of each left row"
        case ForeignStep(keeps="rows"):
            return "the right rows, and by foreign key the left rows"
        case ForeignStep():
            return "the results, for what a change replaces"
        case Source():
            return "the rows by key, for what a change replaces"


def _emission(plan: QueryPlan, program_layout: Layout) -> str:
    if not any(isinstance(stage.node, Aggregate) for stage in program_layout.stages):
        return ""
    if any(isinstance(node, EmitFinal) for node in nodes(plan.sink)):
        return ", each window once, when it has closed"
    return ", every change" if plan.every_change else ", one change per key and commit interval"
