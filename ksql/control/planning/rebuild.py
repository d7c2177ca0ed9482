"""REPLACE_MODE, and the candidate that a rebuild makes of a statement.

Source: docs/upgrades.md#rebuilds. KLIP-28 knows replacements in place only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeVar, get_args

from ksql.control.engine.changes import DeleteSubject, DeleteTopic, ForgetFormer
from ksql.control.engine.context import PlanningContext, PlanningInputs, Prepared, command_id
from ksql.control.engine.errors import BadProperty, InvalidValue
from ksql.control.planning import schemas
from ksql.control.planning.start_mode import EARLIEST, START, starting
from ksql.core import REBUILD_UNDER_WAY, StatementError, is_exactly_once, quote
from ksql.sql.catalog import RECORD_CONFIGS, Catalog, FormerVersion, PersistentQuery, Topic
from ksql.sql.plan import QueryPlan, codec
from ksql.sql.syntax import ast, printer
from ksql.sql.syntax import expr as ex
from ksql.sql.upgrade import RESET, Guarantee, Verdict, inherited

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ksql.control.planning.properties import With

ReplaceMode = Literal["in_place", "rebuild", "auto", "backfill"]
Replacing = ast.CreateAsSelect | ast.ReplaceQuery
_Mode = Literal["in_place", "rebuild", "backfill"]
_Stated = TypeVar("_Stated", bound=Replacing)
MODE: Final = "REPLACE_MODE"
CUT_OVER: Final = "the cut-over of a rebuilt query"
FORGET: Final = "the end of a former version's time"
"""The texts of commands that the service sends by itself."""

_STREAM_TOPIC: Final = {"cleanup.policy": "delete", "retention.ms": "600000"}
_TABLE_TOPIC: Final = {"cleanup.policy": "compact"}


class BeginningLost(StatementError):
    """A rebuild over a source whose first records are gone, without a stated start."""

    def __init__(self, name: str, lost: Mapping[str, int]) -> None:
        super().__init__(
            f"{name} was not rebuilt: the topics of its sources have lost their beginning",
            detail=f"Gone by retention or deletion are {gone_text(lost)}. The running query may "
            "have read them; a new one cannot.",
            hint=f"State where it is to begin: {START}='{EARLIEST}' takes what is there, "
            f"{START}='2026-11-02T10:00:00' what came since.",
        )


def gone_text(lost: Mapping[str, int]) -> str:
    """Return how many first records of which sources are gone."""
    return ", ".join(f"{source}: {count} records" for source, count in sorted(lost.items()))


def check_none(query: PersistentQuery, catalog: Catalog) -> None:
    """Refuse another upgrade of a query while it is rebuilt.

    Raises: REBUILD_UNDER_WAY.
    """
    if query.id in catalog.rebuilds:
        raise REBUILD_UNDER_WAY(query_id=query.id, name=upgraded_name(query))


def upgraded_name(query: PersistentQuery) -> str:
    """Return what ABORT and ROLLBACK UPGRADE OF take for a query."""
    return f"QUERY {quote(query.id)}" if query.kind == "INSERT" else quote(query.sink)


def replace_mode(options: With, *, or_replace: bool) -> ReplaceMode:
    """Read REPLACE_MODE.

    Raises: BadProperty.
    """
    text = options.text(MODE)
    if text is None:
        return "in_place"
    if not or_replace:
        raise BadProperty(f"{MODE} is for CREATE OR REPLACE .. AS SELECT.")
    for mode in get_args(ReplaceMode):
        if text.lower() == mode:
            return mode  # type: ignore[no-any-return] # one of the type's own words
    choices = ", ".join(get_args(ReplaceMode))
    raise InvalidValue(MODE, text, f"String must be one of: {choices}, null")


def stated_mode(stmt: Replacing) -> _Mode:
    """Return the kind that REPLACE_MODE states; ``auto`` counts as ``rebuild``, also if refused."""
    stated = (p.value for p in stmt.properties if p.name.upper() == MODE)
    text = next((value.value for value in stated if isinstance(value, ex.StringLit)), "in_place")
    match text.lower():
        case "in_place" | "backfill" as mode:
            return mode
        case _:
            return "rebuild"


def replaced_by(stmt: Replacing, catalog: Catalog) -> PersistentQuery | None:
    """Return the query that a statement would replace; None if there is none."""
    if isinstance(stmt, ast.ReplaceQuery):
        return catalog.query(stmt.query_id)
    return next(iter(catalog.writers(stmt.name)), None)


def candidate_plan(
    fresh: QueryPlan, running: QueryPlan, overrides: Collection[str], stated: str | None
) -> QueryPlan:
    """Return the plan of a candidate: the running query's settings, the rest as a new query's.

    It begins where the statement says, else at the beginning.
    """
    plan = replace(
        inherited(fresh, running, overrides),
        buckets=fresh.buckets,
        lanes=fresh.lanes,
        placement=fresh.placement,
        partitions=fresh.partitions,
    )
    return starting(plan, stated or EARLIEST)


def backfill_plan(aligned: QueryPlan, stated: str | None) -> QueryPlan:
    """Return the plan of a candidate whose kept aggregates take the running ones' state over.

    ``aligned`` has the running plan's slots and buckets. It begins as that of a rebuild.
    """
    return starting(aligned, stated or EARLIEST)


def accepted(verdict: Verdict, plan: QueryPlan, lost: Mapping[str, int]) -> Verdict:
    """Return the verdict on a rebuild: each change is allowed, as no state is kept.

    ``lost`` counts the first records of its sources that are gone.
    """
    changes = tuple(replace(change, allowed=True) for change in verdict.changes)
    promised = tuple(_guarantees(plan, "the result is", lost))
    return replace(verdict, changes=changes, guarantees=promised)


def filled(verdict: Verdict, plan: QueryPlan, lost: Mapping[str, int]) -> Verdict:
    """Return the verdict on a backfill with what it guarantees; ``lost`` as of ``accepted``."""
    subject = "kept aggregates keep their state; added ones are"
    return replace(verdict, guarantees=tuple(_guarantees(plan, subject, lost)))


def _guarantees(plan: QueryPlan, subject: str, lost: Mapping[str, int]) -> Iterator[Guarantee]:
    began = dict(plan.settings)[RESET]
    whole = began == EARLIEST
    read = "all records that its sources still hold" if whole else "the records from START_MODE on"
    read += f"; gone at the beginning are {gone_text(lost)}" if lost else ""
    yield Guarantee("backfill", whole, f"{subject} computed from {read}")
    yield Guarantee("cascading", True, "queries that read the result keep their columns")
    exactly_once = is_exactly_once(dict(plan.settings))
    how = "one transaction per partition" if exactly_once else "at_least_once: a crash repeats it"
    yield Guarantee("exactly once", exactly_once, f"the difference is written in {how}")
    yield Guarantee("ordered", True, "one offset per partition separates the old plan from the new")
    yield Guarantee("live", True, "the running plan continues until the cut-over")


def statement_of(stmt: Replacing) -> str:
    """Return the statement that would rebuild what this one cannot replace in place."""
    return printer.statement(in_mode(stmt, "rebuild"))


def in_mode(stmt: _Stated, mode: ReplaceMode) -> _Stated:
    """Return the statement with that REPLACE_MODE; in place without a start."""
    gone = (MODE, START) if mode == "in_place" else (MODE,)
    kept = tuple(p for p in stmt.properties if p.name.upper() not in gone)
    return replace(stmt, properties=(*kept, ast.Property(MODE, ex.StringLit(mode))))


def results_topic(query: PersistentQuery, like: Topic, inputs: PlanningInputs) -> Topic:
    """Return the hidden topic of a candidate's results; its size is that of the query's topic.

    It takes the records that the query's topic takes. Else rows would be missing at the cut-over,
    or could not be written then.
    """
    name = query.version.results_topic(service_id(inputs))
    configs = _TABLE_TOPIC if query.kind == "CTAS" else _STREAM_TOPIC
    limits = {key: like.configs[key] for key in RECORD_CONFIGS if key in like.configs}
    return Topic(name, like.partitions, like.replicas, configs | limits)


def writing_to(query: PersistentQuery, topic: str) -> PersistentQuery:
    """Return the query with a plan that writes to that topic."""
    plan = codec.loads(query.plan)
    return replace(query, plan=codec.dumps(replace(plan, sink=replace(plan.sink, topic=topic))))


def deletion(
    query: PersistentQuery, context: PlanningContext
) -> tuple[DeleteTopic | DeleteSubject, ...]:
    """Return the deletion of a version's hidden topic, if that is there, and of its schemas."""
    topic = query.version.results_topic(service_id(context))
    identity = context.topics.identity(topic)
    gone = (DeleteTopic(topic, identity),) if identity else ()
    return (*gone, *subjects(query, context))


def subjects(query: PersistentQuery, context: PlanningContext) -> list[DeleteSubject]:
    """Return the deletion of the schemas that a version has registered for its hidden topic."""
    topic = query.version.results_topic(service_id(context))
    return schemas.deletions_of_results(codec.loads(query.plan).sink, topic, context)


def forgotten(query_id: str, context: PlanningContext) -> Prepared:
    """Return the effects of a former version's end; a warning if none may be given up."""
    query = context.catalog.query(query_id)
    former = None if query is None else context.catalog.former_versions.get(query.id)
    if query is None or former is None or not is_over(former, context.catalog, context.now_ms):
        return Prepared(warning=f"{query_id} has no former version to give up")
    return Prepared(
        command_id=command_id("upgrade", query.sink, "forget"),
        changes=(ForgetFormer(query.id), *deletion(former.query, context)),
        query_id=query.id,
    )


def is_over(former: FormerVersion, catalog: Catalog, now_ms: int) -> bool:
    """Return whether a former version may be given up: its time is over, and it does not run."""
    under_way = catalog.rebuilds.get(former.query.id)
    rolls_back = under_way is not None and under_way.rollback
    return former.keep_until_ms <= now_ms and not rolls_back


def service_id(inputs: PlanningInputs) -> str:
    """Return the service's id, which its topics have in their names."""
    return inputs.settings.text("ksql.service.id")
