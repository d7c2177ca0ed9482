"""The cut-over of a candidate, as the second command of a rebuild: prepared to its effects.

Source: docs/upgrades.md#rebuilds.
"""

from __future__ import annotations

from dataclasses import replace

from ksql.control.engine.changes import Change, CutOverQuery
from ksql.control.engine.context import PlanningContext, Prepared, command_id
from ksql.control.planning import rebuild, schemas
from ksql.control.planning.compare import check_others
from ksql.core import CUT_OVER_REFUSED
from ksql.sql.catalog import Catalog, CutOver, DataSource, PersistentQuery


def prepared(query_id: str, context: PlanningContext, keep_ms: int) -> Prepared:
    """Return the effects of a candidate's cut-over; a warning if it is there no more, or rests.

    The version that runs is kept for so many ms. The former version of before is deleted.

    Raises: CUT_OVER_REFUSED.
    """
    old = context.catalog.query(query_id)
    under_way = None if old is None else context.catalog.rebuilds.get(old.id)
    if old is None or old.paused or under_way is None:
        return Prepared(warning=f"{query_id} has no candidate that runs")
    candidate = under_way.candidate
    query = replace(
        rebuild.writing_to(candidate, under_way.source.topic),
        offset=context.offset,
        cut_over=CutOver(context.number, old.version_number),
    )
    # a stream that INSERT INTO writes may have got columns meanwhile
    inserts = old.kind == "INSERT"
    source = context.catalog.sources[old.sink] if inserts else under_way.source
    _check_others(old, source, context.catalog)
    registered = inserts or under_way.rollback  # nothing of the result's schemas changes
    change = CutOverQuery(query, source, context.now_ms + keep_ms)
    return Prepared(
        command_id=command_id("upgrade", old.sink, "cutover"),
        changes=(
            change,
            *_replaced_former(candidate, context),
            *rebuild.subjects(candidate, context),
        ),
        registrations=() if registered else schemas.of_rebuilt(source, context.registry),
        message=f"{old.id} was cut over",
        query_id=old.id,
        plans={"old": old.plan, "new": query.plan},
    )


def _replaced_former(candidate: PersistentQuery, context: PlanningContext) -> tuple[Change, ...]:
    """Delete the topic of the version that was kept until now; not that of the candidate itself."""
    former = context.catalog.former_versions.get(candidate.id)
    if former is None or former.query.version == candidate.version:
        return ()
    return rebuild.deletion(former.query, context)


def _check_others(old: PersistentQuery, source: DataSource, catalog: Catalog) -> None:
    """Refuse a result that queries could not follow which have come since the rebuild was begun.

    Raises: CUT_OVER_REFUSED.
    """
    stems, others = check_others(old, source, catalog)
    if stems:
        reasons = " AND ".join(f"({stem})" for stem in stems)
        raise CUT_OVER_REFUSED(
            query_id=old.id, reasons=reasons, others=others, name=rebuild.upgraded_name(old)
        )
