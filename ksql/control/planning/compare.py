"""Step 3 of a replacement, *compare*: may the new source or query take the old one's place?

``check_replacement`` is ksqlDB's own check of sources, in its words; plans are judged by
``ksql.sql.upgrade``.
Source: docs/upgrades.md#what-is-refused.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from ksql.control.engine.errors import BESIDE, UpgradeRefused
from ksql.control.planning import rebuild, start_mode
from ksql.control.planning.expected import check_expected
from ksql.control.planning.properties import STORE
from ksql.control.planning.resolve import LostRecords
from ksql.core import KsqlError, Settings, StatementError, canonical
from ksql.core.types import Column, Format, Role, as_written, capabilities
from ksql.sql.catalog import Catalog, DataSource, PersistentQuery
from ksql.sql.plan import QueryPlan, codec
from ksql.sql.syntax import ast
from ksql.sql.upgrade import (
    RESET,
    Difference,
    Verdict,
    backfill,
    inherited,
    notes,
    validate_upgrade,
)

if TYPE_CHECKING:
    from ksql.control.engine.context import PlanningInputs
    from ksql.control.planning.plan_queries import PlannedQuery
    from ksql.control.planning.resolve import ResolvedQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The query that a statement would make of a running one.

    ``existing`` is the result as it is, ``source`` as it would be; ``store`` is STORE_TYPE. For
    ``start`` and ``lost`` see ``ResolvedQuery``.
    """

    statement: rebuild.Replacing
    writer: PersistentQuery
    plan: QueryPlan
    existing: DataSource
    source: DataSource
    mode: rebuild.ReplaceMode
    start: str | None
    lost: LostRecords
    store: str | None = None

    def refused(
        self, stems: Iterable[str], verdict: Verdict | None = None, way_out: str = ""
    ) -> UpgradeRefused:
        """Return the refusal for these reasons; ``way_out`` has a statement that would do."""
        one_writer = self.writer.id if isinstance(self.statement, ast.ReplaceQuery) else ""
        return UpgradeRefused(self.existing.name, stems, verdict, way_out, one_writer)


@dataclass(frozen=True, slots=True)
class Compared:
    """The plan as it will run; for a replacement with its verdict and the old plan.

    ``rebuilds``: it is the plan of a candidate; ``backfills``: of one that takes kept state over.
    """

    plan: QueryPlan
    verdict: Verdict | None = None
    old_plan: str | None = None
    rebuilds: bool = False
    backfills: bool = False

    @property
    def accepted(self) -> bool:
        """Whether the running query may be replaced in place."""
        return self.verdict is not None and self.verdict.accepted


def queries(resolved: ResolvedQuery, planned: PlannedQuery, inputs: PlanningInputs) -> Compared:
    """Put the new plan on the old one's id and state, if there is an old one.

    Raises: UpgradeRefused, with all reasons at once; REPLACED_MEANWHILE.
    """
    existing, writer = resolved.existing, resolved.writer
    if resolved.statement.or_replace and writer is None:
        check_expected(None, resolved.statement.name, inputs.settings)
    if existing is None:
        return Compared(start_mode.starting(planned.plan, resolved.start))
    if writer is None:
        if stems := check_replacement(existing, planned.source):
            raise UpgradeRefused(existing.name, stems, None)
        return Compared(start_mode.starting(planned.plan, resolved.start))
    return replacement(
        Replacement(
            statement=resolved.statement,
            writer=writer,
            plan=planned.plan,
            existing=existing,
            source=planned.source,
            mode=resolved.mode,
            start=resolved.start,
            lost=resolved.lost,
            store=resolved.store,
        ),
        inputs,
    )


def replacement(new: Replacement, inputs: PlanningInputs) -> Compared:
    """Put the new plan on a running query's id, and on its state if it is replaced in place.

    Raises: UpgradeRefused, with all reasons at once; REPLACED_MEANWHILE.
    """
    check_expected(new.writer, new.existing.name, inputs.settings)
    rebuild.check_none(new.writer, inputs.catalog)
    old = codec.loads(new.writer.plan, inputs.functions)
    if new.mode == "backfill":
        return _backfill(new, old, inputs)
    stems = check_replacement(new.existing, new.source)
    in_place = _in_place(new, old, inputs)
    possible = not stems and in_place.accepted
    if new.mode == "in_place" or (new.mode == "auto" and possible):
        if not possible:
            raise new.refused(stems, in_place.verdict, _way_out(new, old, in_place, inputs))
        if new.mode == "in_place":
            _refuse_start(new)
        return in_place
    return _beside(new, old, in_place, inputs)


def _in_place(
    new: Replacement, old: QueryPlan, inputs: PlanningInputs, *, filled: bool = False
) -> Compared:
    """Put the new plan on the old one's state, whether that is accepted or not."""
    plan = inherited(new.plan, old, inputs.settings.overrides)
    verdict, aligned = validate_upgrade(
        old, plan, inputs.functions, inputs.generation, filled=filled
    )
    verdict = replace(verdict, inherited=notes(new.plan, plan))
    return Compared(aligned, _with_store(verdict, new, inputs), new.writer.plan)


def _backfill(new: Replacement, old: QueryPlan, inputs: PlanningInputs) -> Compared:
    """Return the plan of a candidate that takes the state of kept aggregates over.

    Raises: UpgradeRefused, BeginningLost.
    """
    aligned = _in_place(new, old, inputs, filled=True)
    assert aligned.verdict is not None  # noqa: S101 - two plans were compared
    verdict = backfill.backfilled(aligned.verdict, old, aligned.plan)
    stems = check_replacement(new.existing, new.source)
    if stems or not verdict.accepted:
        in_place = _in_place(new, old, inputs)
        raise new.refused(stems, verdict, _way_out(new, old, in_place, inputs))
    _check_beginning(new)
    plan = rebuild.backfill_plan(aligned.plan, new.start)
    verdict = rebuild.filled(verdict, plan, _missed(new))
    return Compared(plan, verdict, new.writer.plan, rebuilds=True, backfills=True)


def _beside(
    new: Replacement, old: QueryPlan, in_place: Compared, inputs: PlanningInputs
) -> Compared:
    """Return the plan of a candidate.

    Raises: UpgradeRefused, if readers of the result could not follow; BeginningLost.
    """
    verdict = in_place.verdict
    assert verdict is not None  # noqa: S101 - two plans were compared
    stems = _against_rebuild(new, old, in_place, inputs)
    if stems:
        raise new.refused(stems)
    _check_beginning(new)
    plan = rebuild.candidate_plan(new.plan, old, inputs.settings.overrides, new.start)
    handed_on = notes(new.plan, plan, {RESET})  # START_MODE says it
    verdict = replace(verdict, inherited=handed_on)
    verdict = rebuild.accepted(verdict, plan, _missed(new))
    return Compared(plan, verdict, in_place.old_plan, rebuilds=True)


def check_readers(old: DataSource, new: DataSource, catalog: Catalog) -> list[str]:
    """Return every reason of the result's readers against a rebuild; empty if there is none.

    Another size of the windows is fine as long as no query reads their topic, under whatever name.
    """
    kinds = {window.kind for window in (old.window, new.window) if window is not None}
    windows = old.window is not None and new.window is not None and "SESSION" not in kinds
    if windows and not catalog.readers_from(old.topic):
        new = replace(new, window=old.window)
    return check_replacement(old, new)


def check_others(
    query: PersistentQuery, new: DataSource, catalog: Catalog
) -> tuple[list[str], str]:
    """Return every reason of other queries against another result of a query; and their ids.

    Those that read it would miss columns, and those that write it would not give it new ones. The
    difference would delete what they write to the topic of a table.
    """
    old = catalog.sources[query.sink]
    readers = [reader.id for reader in catalog.readers_from(old.topic)]
    writers = [writer.id for writer in catalog.writers_to(old.topic) if writer.id != query.id]
    stems = check_replacement(old, new) if readers or writers else []
    known = {column.name for column in old.schema.columns}
    added = ", ".join(str(column) for column in new.schema.columns if column.name not in known)
    if writers and added:
        stems.append(f"Query {', '.join(writers)} writes '{old.name}' and does not give it {added}")
    if writers and query.kind == "CTAS":
        rows = "as well, and the cut-over would delete its rows"
        stems.append(f"Query {', '.join(writers)} writes topic '{old.topic}' {rows}")
    return stems, ", ".join(dict.fromkeys([*readers, *writers]))


def _check_beginning(new: Replacement) -> None:
    """Raises: BeginningLost, if sources have lost it and no start is stated."""
    if lost := _lost_records(new):
        raise rebuild.BeginningLost(new.existing.name, lost)


def _lost_records(new: Replacement) -> Mapping[str, int]:
    """Return the first records that a rebuild would miss without having stated that."""
    return new.lost() if new.start is None else {}


def _missed(new: Replacement) -> Mapping[str, int]:
    """Return the first records that are gone for a rebuild with a stated start.

    Without a stated start the rebuild is refused. From now on only those of tables count.
    """
    return {} if new.start is None else new.lost(streams=new.start != start_mode.LATEST)


def _way_out(new: Replacement, old: QueryPlan, in_place: Compared, inputs: PlanningInputs) -> str:
    """Return the statement that would rebuild the query, with its effect; empty if none would.

    None would as long as Kafka does not say what its sources hold.
    """
    if _against_rebuild(new, old, in_place, inputs):
        return ""
    try:
        lost = _lost_records(new)
    except KsqlError:
        return ""
    if lost:
        statement = start_mode.from_the_beginning(new.statement)
        missed = f", without the records that are gone ({rebuild.gone_text(lost)})"
    else:
        statement, missed = new.statement, ""
    return f"{BESIDE}{missed}:\n{rebuild.statement_of(statement)}"


def _against_rebuild(
    new: Replacement, old: QueryPlan, in_place: Compared, inputs: PlanningInputs
) -> list[str]:
    """Return every reason against a rebuild once, all about the readers of the result.

    ``check_readers`` words what the plans' comparison calls unsupported, too.
    """
    existing = new.existing
    stems = check_readers(existing, new.source, inputs.catalog)
    stems += check_growth(existing, new.source, ())
    changes = in_place.verdict.changes if in_place.verdict is not None else ()
    stems = stems or [str(c) for c in changes if c.kind == "unsupported" and not c.allowed]
    began = old.partitions or existing.partitions  # plans of earlier versions do not say it
    if new.plan.partitions != began:
        stems.append(
            f"Topic '{existing.topic}' has {new.plan.partitions} partitions and had "
            f"{began} when the query began: its rows would move, which readers of "
            f"'{existing.name}' do not expect"
        )
    return stems


def _refuse_start(new: Replacement) -> None:
    if new.start is not None:
        raise StatementError(
            f"{start_mode.START} has no effect on a replacement in place: the new plan continues "
            "where the running one has read to.",
            hint=f"Leave it out, or rebuild the query: {rebuild.statement_of(new.statement)}",
        )


def _with_store(verdict: Verdict, new: Replacement, inputs: PlanningInputs) -> Verdict:
    """List another STORE_TYPE: rows go into another store, and results stay what they are."""
    stated, before = (
        {canonical(name): text for name, text in properties}
        for properties in (inputs.settings.overrides.items(), new.writer.properties)
    )
    store = new.store or stated.get(STORE)
    has = before.get(STORE) or Settings(inputs.settings.server).text(STORE)
    if new.writer.kind != "CTAS" or store is None or store.lower() == has.lower():
        return verdict
    text = f"{has.lower()} became {store.lower()}; its rows are moved"
    return verdict.also([Difference("configuration", "STORE_TYPE", text, allowed=True)])


def sources(existing: DataSource | None, new: DataSource, catalog: Catalog) -> DataSource:
    """Let a declared source take another's place, if there is one.

    Raises: UpgradeRefused.
    """
    if existing is None:
        return new
    stems = check_replacement(existing, new)
    stems += check_growth(existing, new, catalog.queries)
    if stems:
        raise UpgradeRefused(new.name, stems, None)
    return replace(new, created_by=existing.created_by, derived_from=existing.derived_from)


def growth(old: DataSource, new: DataSource, catalog: Catalog) -> None:
    """Compare a source with what an ALTER makes of it.

    Raises: UpgradeRefused.
    """
    if stems := check_growth(old, new, catalog.queries):
        raise UpgradeRefused(old.name, stems, None)


def check_replacement(old: DataSource, new: DataSource) -> list[str]:
    """Return every reason against it, in ksqlDB's words; empty if there is none."""
    stems = []
    if old.kind != new.kind:
        stems.append(
            f"DataSource '{old.name}' has type = K{old.kind} "
            f"which cannot be upgraded to K{new.kind}"
        )
    if _storage(old) != _storage(new):
        stems.append(
            f"DataSource '{old.name}' has topic = {_shown(old)} "
            f"which cannot be upgraded to {_shown(new)}"
        )
    if old.timestamp != new.timestamp:
        stems.append(
            f"DataSource '{old.name}' has timestampColumn = {_time(old)} "
            f"which cannot be upgraded to {_time(new)}"
        )
    stems += _columns(old, new)
    return stems


def check_growth(old: DataSource, new: DataSource, queries: Container[str]) -> list[str]:
    """Return every reason against the columns that a declaration adds; empty if there is none.

    ``queries`` are the ids of all queries.
    """
    known = {column.name for column in old.schema.columns}
    added = ", ".join(str(c) for c in new.schema.columns if c.name not in known)
    if not added:
        return []
    stems = []
    if capabilities(old.value_format.name).fixed_columns:
        stems.append(
            f"The records of {old.value_format.name} have as many fields as '{old.name}' has "
            f"columns: with {added} what is in topic {old.topic} could not be read any more, and "
            "queries that run would skip what comes"
        )
    if old.created_by is not None and old.created_by in queries:
        stems.append(f"Query {old.created_by} writes '{old.name}' and does not give it {added}")
    return stems


def _storage(source: DataSource) -> tuple[object, ...]:
    formats = as_written(source.key_format), as_written(source.value_format)
    return (source.topic, *formats, source.window)


def _shown(source: DataSource) -> str:
    window = (
        f", {source.window.kind} {source.window.size_ms or ''}".rstrip() if source.window else ""
    )
    return f"{source.topic} ({_format(source.key_format)}/{_format(source.value_format)}{window})"


def _format(format_: Format) -> str:
    """Return the format's name, and its properties where they differ from the defaults."""
    plain = Format(format_.name)
    stated = {part.name: getattr(format_, part.name) for part in fields(Format)}
    shown = [f"{n}='{v}'" for n, v in stated.items() if v != getattr(plain, n)]
    return f"{format_.name} {', '.join(shown)}" if shown else format_.name


def _time(source: DataSource) -> str:
    timestamp = source.timestamp
    if timestamp is None:
        return "none"
    return (
        timestamp.name if timestamp.pattern is None else f"{timestamp.name} ({timestamp.pattern})"
    )


def _columns(old: DataSource, new: DataSource) -> list[str]:
    stems = []
    lost_keys = _lost(old.schema.key, new.schema.key)
    if old.schema.key != new.schema.key:
        shown = lost_keys or old.schema.key
        stems.append(
            "Key columns must be identical. The following key columns are changed, missing or "
            f"reordered: [{', '.join(map(str, shown))}]"
        )
    lost = _lost(
        tuple(c for c in old.schema.columns if c.role is not Role.KEY),
        tuple(c for c in new.schema.columns if c.role is not Role.KEY),
    )
    if lost:
        stems.append(
            "The following columns are changed, missing or reordered: "
            f"[{', '.join(map(str, lost))}]"
        )
    return stems


def _lost(old: tuple[Column, ...], new: tuple[Column, ...]) -> list[Column]:
    return [c for i, c in enumerate(old) if i >= len(new) or new[i] != c]
