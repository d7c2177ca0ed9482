"""Decides whether a new plan may take over the old one's state; classifies all differences.

The rule of each plan field is declared at the field (``on_upgrade``). Here the two plans are walked
together, and rules for several nodes are added. Refusal is the default. Source: KLIP-28; the
reference's page on upgrades, section 7.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, get_args

from ksql.core import is_exactly_once, quote
from ksql.core.types import Format, as_written, capabilities
from ksql.sql.binder import trees
from ksql.sql.binder.bound import Bound, Column, Named
from ksql.sql.binder.show import show_call, sql_of
from ksql.sql.plan import nodes as p
from ksql.sql.plan.walk import children, nodes, result_kind, sources
from ksql.sql.upgrade import added_columns, code, settings
from ksql.sql.upgrade.align import align
from ksql.sql.upgrade.filters import Passive, conditions, other_rows, passive, same_conditions
from ksql.sql.upgrade.naming import fold_twin, with_distinct_names
from ksql.sql.upgrade.settings import shown, shown_fold
from ksql.sql.upgrade.traits import guarantees, keeps_state, traits
from ksql.sql.upgrade.verdict import ACCEPTED, Difference, Verdict, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.core.types import schema
    from ksql.functions import Functions

Step = Literal["GROUP BY", "PARTITION BY", "EMIT", "JOIN"]
_STEPS: tuple[Step, ...] = get_args(Step)


def validate_upgrade(
    old: p.QueryPlan,
    new: p.QueryPlan,
    functions: Functions,
    generation: int = 0,
    *,
    filled: bool = False,
) -> tuple[Verdict, p.QueryPlan]:
    """Classify the upgrade; also the new plan as it would run.

    It runs under the old id, with the old buckets and state slots. The slots it adds are of a
    ``generation`` that no other attempt has. ``filled``: their state does not start empty.
    """
    old = _with_distinct_names(old, new)
    aligned = align(old, new, functions, generation)
    target = new if keeps_state(old.sink) else dataclasses.replace(new, buckets=old.buckets)
    found_changes = (
        *_compare_fields(old, target),
        *_compare(old.sink, aligned.sink, functions, filled=filled),
        *added_columns.compare(old.sink, aligned.sink),
        *settings.compare(old, new),
        *code.compare(old, aligned),
    )
    changes = tuple(dict.fromkeys(found_changes))
    classes = in_order({change.kind for change in changes})
    exactly_once = is_exactly_once(dict(aligned.settings))
    plan_traits = traits(aligned, functions)
    notes = tuple(_notes(old, aligned, functions))
    promised = guarantees(classes, notes, exactly_once=exactly_once)
    return Verdict(
        classes=classes, traits=plan_traits, guarantees=promised, changes=changes
    ), aligned


def _notes(old: p.QueryPlan, aligned: p.QueryPlan, functions: Functions) -> Iterator[str]:
    """Say what the results lack from the switch on."""
    if _starts_empty(old.sink, aligned.sink):
        yield "added aggregates start empty at the switch; no backfill"
    if gone := _forgotten(old.sink, aligned.sink):
        yield f"{', '.join(gone)}: no longer kept; its state is gone if it comes back"
    if other_rows(old, aligned, functions):
        yield (
            "a row that no longer passes stays in the result until it changes or is deleted; "
            "one that passes now comes when it changes"
        )
    yield from added_columns.notes(aligned.sink)


def _with_distinct_names(old: p.QueryPlan, new: p.QueryPlan) -> p.QueryPlan:
    sink = with_distinct_names(old.sink, new.sink)
    assert isinstance(sink, p.Sink)  # noqa: S101 - a sink stays a sink
    return dataclasses.replace(old, sink=sink)


def _change(kind: p.UpgradeKind, clause: str, text: str) -> Difference:
    return Difference(kind, clause, text, allowed=kind in ACCEPTED)


def _refused(kind: p.UpgradeKind, clause: str, text: str) -> Difference:
    return Difference(kind, clause, text, allowed=False)


# --- walking both plans


def _compare(
    old: p.Plan, new: p.Plan, functions: Functions, *, undone: bool = False, filled: bool = False
) -> Iterator[Difference]:
    """Yield differences; ``undone``: an aggregate above takes old rows of a table back.

    ``filled``: the state of added aggregates does not start empty.
    """
    old_steps, old_core, was_final = _passive_steps(old)
    new_steps, new_core, is_final = _passive_steps(new)
    if was_final != is_final:
        verb = "added" if is_final else "removed"
        yield _refused("topology", "EMIT", f"the clause was {verb}")
    for clause, text in _compare_filters(old_steps, new_steps, functions):
        if undone:
            reason = f"{text}; rows that were folded before could not be taken back"
            yield _refused("topology", clause, reason)
        else:
            yield _change("data selection", clause, text)
    yield from _compare_explosions(old_steps, new_steps)
    yield from _compare_projections(old_steps, new_steps)
    if type(old_core) is not type(new_core) or (
        not isinstance(old_core, p.Sink) and _joins(old_core) != _joins(new_core)
    ):
        yield from _other_shape(old_core, new_core)
        return
    below = tuple(_compare_fields(old_core, new_core, final=is_final))
    yield from below
    if all(change.allowed for change in below):
        yield from _compare_keys((old_steps, old_core), (new_steps, new_core))
    takes_back = False
    if isinstance(old_core, p.Aggregate) and isinstance(new_core, p.Aggregate):
        takes_back = result_kind(old_core.source) == "TABLE"
        yield from _compare_ttl(old_core.ttl_ms, new_core.ttl_ms)
        added = _added(old_core, new_core)
        if not filled:
            yield from _compare_folds(added, old_steps, new_steps)
        if takes_back:
            for fold in added.values():
                text = f"{shown_fold(fold)} would take back rows of a table that it never folded"
                yield _refused("topology", "SELECT", text)
    for before, after in zip(children(old_core), children(new_core), strict=True):
        yield from _compare(before, after, functions, undone=takes_back, filled=filled)


def _passive_steps(plan: p.Plan) -> tuple[list[Passive], p.Plan, bool]:
    """Return the steps that remember nothing, what is below, and whether its results are final.

    EMIT FINAL is between a projection and HAVING; either belongs to the aggregate below.
    """
    steps, core = passive(plan)
    if not isinstance(core, p.EmitFinal):
        return steps, core, False
    more, core = passive(core.source)
    return [*steps, *more], core, True


def _joins(plan: p.Plan) -> int:
    return sum(isinstance(node, p.Join) for node in nodes(plan))


def _step(node: p.Plan) -> Step | None:
    """Return the clause that makes the node, if it is a step that cannot come or go."""
    match node:
        case p.Aggregate():
            return "GROUP BY"
        case p.Rekey():
            return "PARTITION BY"
        case p.EmitFinal():
            return "EMIT"
        case p.StreamTableJoin() | p.StreamStreamJoin() | p.TableTableJoin() | p.ForeignKeyJoin():
            return "JOIN"
        case p.Source() | p.Filter() | p.Explode() | p.Select() | p.Sink():
            return None


def _other_shape(old: p.Plan, new: p.Plan) -> Iterator[Difference]:
    """Yield the steps that were removed, added or put into another order."""
    lost, won = (Counter(map(type, nodes(plan))) for plan in (old, new))
    steps = {type(node): _step(node) for plan in (old, new) for node in nodes(plan)}
    for counts, verb in ((lost - won, "removed"), (won - lost, "added")):
        changed = {steps[cls] for cls in counts}
        for clause in _STEPS:
            if clause not in changed:
                continue
            if clause == "JOIN":
                yield _refused("source modifying", clause, f"a join was {verb}")
            else:
                yield _refused("topology", clause, f"the clause was {verb}")
    if lost == won:
        yield _refused("topology", _step(new) or "FROM", "the order of the steps changed")
    before, after = ({s.name for s in sources(plan)} for plan in (old, new))
    for name in sorted(before - after):
        yield _refused("source modifying", "FROM", f"{quote(name)} is no longer read")
    for name in sorted(after - before):
        yield _refused("source modifying", "FROM", f"{quote(name)} was not read before")
    yield from _windows_changed(old, new)


def _windows_changed(old: p.Plan, new: p.Plan) -> Iterator[Difference]:
    """Yield what became of the window of an aggregate that is there in another shape as well."""
    pairs = [_aggregates(plan) for plan in (old, new)]
    if all(len(pair) == 1 for pair in pairs):
        ([before], [after]) = pairs
        if before.window != after.window:
            text = f"{shown(before.window)} became {shown(after.window)}"
            yield _refused("topology", "WINDOW", text)


def _compare_filters(
    old: list[Passive], new: list[Passive], functions: Functions
) -> Iterator[tuple[str, str]]:
    """Return the clauses whose conditions differ, and how."""
    for clause in ("WHERE", "HAVING"):
        before, after = (conditions(steps, clause) for steps in (old, new))
        if not same_conditions(before, after, functions):
            yield (
                clause,
                _became(*(" AND ".join(map(sql_of, conjuncts)) for conjuncts in (before, after))),
            )


def _became(before: str, after: str) -> str:
    """Describe a change; both sides may look alike: 1.0 is a DECIMAL, 1E0 a DOUBLE."""
    types = ", computed in other types" if before == after else ""
    return f"{before or 'none'} became {after or 'none'}{types}"


def _compare_explosions(old: list[Passive], new: list[Passive]) -> Iterator[Difference]:
    before, after = (
        [call for step in steps if isinstance(step, p.Explode) for call in step.calls]
        for steps in (old, new)
    )
    if before != after:
        texts = (
            ", ".join(show_call(c.function, c.args) for c in calls) for calls in (before, after)
        )
        yield _change("data selection", "SELECT", f"table functions: {_became(*texts)}")


def _compare_projections(old: list[Passive], new: list[Passive]) -> Iterator[Difference]:
    before, after = (
        {n.name: n.expr for step in steps if isinstance(step, p.Select) for n in step.value}
        for steps in (old, new)
    )
    for name, expr in before.items():
        if name in after and after[name] != expr:
            text = f"{quote(name)} was {sql_of(expr)}, is {sql_of(after[name])}"
            yield _change("data selection", "SELECT", text)


_Stretch = tuple[list[Passive], p.Plan]


def _compare_keys(old: _Stretch, new: _Stretch) -> Iterator[Difference]:
    """Return the order in which the same expressions make the result's key."""
    for (name, before), (_, after) in zip(_key(*old), _key(*new), strict=False):
        if before != after:  # their number is the sink's business
            became = _became(sql_of(before), sql_of(after))
            yield _refused("topology", "SELECT", f"key column {quote(name)}: {became}")


def _key(steps: list[Passive], core: p.Plan) -> list[tuple[str, Bound]]:
    """Return the columns of the result's key, over what the step below makes them of."""
    keyed = next((step.key for step in steps if isinstance(step, p.Select)), ())
    columns = core.group if isinstance(core, p.Aggregate) else ()
    columns = core.keys if isinstance(core, p.Rekey) else columns
    below = {named.name: named.expr for named in columns}
    keys = []
    for named in keyed:
        expr = named.expr
        keys.append((named.name, below.get(expr.name, expr) if isinstance(expr, Column) else expr))
    return keys


# --- fields and their rules


def _compare_fields(
    old: p.Plan | p.QueryPlan, new: p.Plan | p.QueryPlan, *, final: bool = False
) -> Iterator[Difference]:
    """Yield what a node's rules say; ``final``: its results are given once, by EMIT FINAL."""
    if isinstance(old, p.Source) and isinstance(new, p.Source) and old.name != new.name:
        # one reason says it all: topic, columns and formats follow from the name
        text = f"{quote(old.name)} is no longer read, {quote(new.name)} is instead"
        yield _refused("source modifying", "FROM", text)
        return
    for field in dataclasses.fields(old):
        before, after = getattr(old, field.name), getattr(new, field.name)
        rule, kind, clause = (field.metadata[k] for k in ("rule", "kind", "clause"))
        if _comparable(before) == _comparable(after):
            continue
        if rule == "match":
            message = f"{shown(before)} became {shown(after)}"
            yield _other_grace(before, after, final=final) or _refused(kind, clause, message)
        elif rule == "grow":
            yield from _compare_columns(before, after, clause)
            if isinstance(new, p.Sink):
                yield from _appended(new, before, kind, clause)


def _other_grace(old: Any, new: Any, *, final: bool) -> Difference | None:
    """Return the change of a grace period alone: other late records count from there on.

    A session that was given as final must not be opened again by a late record. It would grow, and
    its records would count in two final results.
    """
    if not isinstance(old, p.TimeWindow) or not isinstance(new, p.TimeWindow):
        return None
    if dataclasses.replace(old, grace_ms=new.grace_ms) != new:
        return None
    text = f"{old.grace_ms} MILLISECONDS became {new.grace_ms} MILLISECONDS"
    if final and new.kind == "SESSION" and new.grace_ms > old.grace_ms:
        reason = f"{text}; late records would open sessions whose final result was given"
        return _refused("topology", "GRACE PERIOD", reason)
    return _change("data selection", "GRACE PERIOD", text)


def _compare_ttl(old_ms: int, new_ms: int) -> Iterator[Difference]:
    """Yield the change of a RETENTION_MS of rows; 0 is none. The state has the time of each row."""
    if old_ms == new_ms:
        return
    before, after = (str(ms) if ms else "none" for ms in (old_ms, new_ms))
    if new_ms and (not old_ms or new_ms < old_ms):
        follows = "rows that are past it leave with the next record of their partition"
    else:
        follows = "rows that have left do not come back"
    yield _change("data selection", "RETENTION_MS", f"{before} became {after}; {follows}")


def _compare_columns(
    old: tuple[schema.Column, ...], new: tuple[schema.Column, ...], clause: str
) -> Iterator[Difference]:
    places = {column.name: (index, column) for index, column in enumerate(new)}
    for index, column in enumerate(old):
        earlier = places.get(column.name)
        if earlier is None:
            yield _refused("unsupported", clause, f"column {column} was removed")
        elif earlier[1].type != column.type:
            text = f"column {quote(column.name)} was {column.type}, is {earlier[1].type}"
            yield _refused("unsupported", clause, text)
        elif earlier[1].role != column.role:
            text = f"column {quote(column.name)} moved between key and value"
            yield _refused("unsupported", clause, text)
        elif earlier[0] != index:
            text = f"column {quote(column.name)} moved from place {index + 1} to {earlier[0] + 1}"
            yield _refused("unsupported", clause, text)


def _appended(
    sink: p.Sink, old: tuple[schema.Column, ...], kind: p.UpgradeKind, clause: str
) -> Iterator[Difference]:
    """Yield columns that the result gets; what else a source got changes nothing by itself."""
    known = {column.name for column in old}
    added = ", ".join(str(column) for column in sink.value if column.name not in known)
    if added and capabilities(sink.value_format.name).fixed_columns:
        text = (
            f"added {added}; a reader of {sink.value_format.name} knows a record by its number of "
            "columns: those that run would skip every new record, later ones every old record"
        )
        yield _refused("unsupported", clause, text)
    elif added:
        yield _change(kind, clause, f"added {added}")


def _starts_empty(old: p.Plan, new: p.Plan) -> bool:
    """Return whether the new plan has an aggregate that the old one does not have."""
    pairs = zip(_aggregates(old), _aggregates(new), strict=False)
    return any(_added(before, after) for before, after in pairs)


def _forgotten(old: p.Plan, new: p.Plan) -> list[str]:
    """Return the aggregates that the new plan has no use for.

    One that is kept in another spelling is not gone: its state serves both when they come back.
    """
    return [
        shown_fold(fold)
        for before, after in zip(_aggregates(old), _aggregates(new), strict=False)
        for fold in _added(after, before).values()
        if fold_twin(fold, after.folds) is None
    ]


def _aggregates(plan: p.Plan) -> list[p.Aggregate]:
    return [node for node in nodes(plan) if isinstance(node, p.Aggregate)]


def _added(old: p.Aggregate, aligned: p.Aggregate) -> dict[str, p.Fold]:
    """Return the aggregates whose state starts empty, by the names of their columns."""
    running = {fold.slot for fold in old.folds}
    return {fold.name: fold for fold in aligned.folds if fold.slot not in running}


def _compare_folds(
    added: dict[str, p.Fold],
    old_steps: list[Passive],
    new_steps: list[Passive],
) -> Iterator[Difference]:
    """Refuse old columns that come to depend on a state that starts empty; HAVING may."""
    existing = {n.name for step in old_steps if isinstance(step, p.Select) for n in step.value}
    for step in new_steps:
        if isinstance(step, p.Filter):
            for column in trees.columns(step.predicate):
                if column.name in added:
                    text = f"needs {shown_fold(added[column.name])}, whose state starts empty"
                    yield _change("data selection", step.clause, text)
            continue
        if isinstance(step, p.Explode):
            continue
        for named in step.value:
            if named.name not in existing:
                continue
            for column in trees.columns(named.expr):
                if column.name in added:
                    text = (
                        f"{quote(named.name)} is now computed by {shown_fold(added[column.name])}, "
                        "whose state would start empty"
                    )
                    yield _refused("topology", "SELECT", text)


def _comparable(value: Any) -> Any:
    """Return the part that counts: the expressions of key columns, the written form of values."""
    if isinstance(value, tuple) and all(isinstance(item, Named) for item in value):
        return tuple(named.expr for named in value)
    return as_written(value) if isinstance(value, Format) else value
