"""SHOW UPGRADES and DESCRIBE UPGRADE, the same for REST, and the statement of a rollback.

The history is in the ledger. The rebuilds of the catalog are shown without it, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ksql.control.access import seen_queries
from ksql.control.engine.catch_up import CatchUpSpeed
from ksql.control.engine.errors import DoesNotExist, NoFormerVersion
from ksql.control.engine.rebuild_progress import (
    percent,
    present_problem,
    records_read,
    records_to_read,
    seconds_behind,
)
from ksql.control.statements import entities as e
from ksql.control.statements.upgradereport import UpgradeDescription, UpgradeInfo, UpgradeProgress
from ksql.core import NO_HISTORY, QueryId, StatementError, excerpt, quote, visible
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ksql.control.statements.services import Handlers, Request, Services
    from ksql.exec import BuildProgress
    from ksql.sql.catalog import Catalog, FormerVersion, PersistentQuery, Rebuild

WITHOUT_HISTORY = (
    "The ledger cannot be read: only the rebuilds that are under way, and the last cut-overs of "
    "queries that can be rolled back, are listed. Times, classes and offsets are missing."
)


_GROWN: Final = "schema evolution"


class UnknownUpgrade(StatementError):
    """No upgrade of the service has that id; it names a resource of the REST interface, too."""

    code = 40400

    def __init__(self, upgrade_id: str) -> None:
        super().__init__(
            f"there is no upgrade '{excerpt(upgrade_id)}'", hint="SHOW UPGRADES; shows the ids."
        )


def show(stmt: ast.Show, request: Request) -> e.Upgrades:
    """Answer SHOW UPGRADES [FOR name]."""
    answer = listed(request.services, stmt.source, request.text, _service_id(request))
    seen = tuple(row for row in answer.upgrades if _is_seen(row, request))
    if stmt.source is not None and not seen and not _names_seen(stmt.source, request):
        raise _unknown(stmt.source, request.engine.catalog)
    if len(seen) == len(answer.upgrades):
        return answer
    return replace(answer, upgrades=seen, warnings=_slow(seen))


def _is_seen(upgrade: UpgradeInfo, request: Request) -> bool:
    """Return whether the user may see it: as the query is now, or if that is gone, its result."""
    query = request.engine.catalog.queries.get(QueryId(upgrade.query_id))
    if query is not None:
        return request.requester.sees_query(query)
    return request.requester.sees("source", upgrade.source or "*")


def listed(services: Services, name: str | None, text: str, service_id: str) -> e.Upgrades:
    """Return the upgrades of one query, of all that write a stream or table, or of all.

    Raises: DoesNotExist.
    """
    catalog = services.engine.catalog
    ids = None if name is None else _query_ids(name, catalog)
    recorded = _recorded(ids, services)
    known = [row for row in _of_catalog(catalog, service_id) if ids is None or row.query_id in ids]
    rows = known if recorded is None else recorded
    if name is not None and not rows and not _is_known(name, catalog):
        raise _unknown(name, catalog)
    infos = tuple(_with_progress(row, services, service_id).info for row in rows)
    away = () if recorded is not None else (e.EntityWarning(WITHOUT_HISTORY),)
    return e.Upgrades(statement_text=text, upgrades=infos, warnings=(*away, *_slow(infos)))


def _names_seen(name: str, request: Request) -> bool:
    """Return whether the user sees a stream, table or query of that name."""
    catalog = request.engine.catalog
    if name in catalog.sources:
        return request.requester.sees("source", name)
    query = catalog.query(name)
    return query is not None and request.requester.sees_query(query)


def _unknown(name: str, catalog: Catalog) -> DoesNotExist:
    known = (*visible(catalog.sources), *seen_queries(catalog))
    return DoesNotExist(f"There is no stream, table or query {quote(name)}.", name, known)


def describe(stmt: ast.DescribeUpgrade, request: Request) -> e.UpgradeDescriptionEntity:
    """Answer DESCRIBE UPGRADE."""
    answer = described(request.services, stmt.upgrade_id, request.text, _service_id(request))
    upgrade = answer.upgrade_description
    if not _is_seen(upgrade, request):
        raise UnknownUpgrade(stmt.upgrade_id)
    return replace(answer, upgrade_description=_without_unseen(upgrade, request))


def described(
    services: Services, upgrade_id: str, text: str, service_id: str
) -> e.UpgradeDescriptionEntity:
    """Return all that is known of an upgrade.

    Raises: UnknownUpgrade; NO_HISTORY if the ledger, which may know it, is away.
    """
    upgrade = services.history.upgrade(upgrade_id)
    warnings: tuple[e.EntityWarning, ...] = ()
    if upgrade is None and services.history.upgrades(None) is None:
        rows = _of_catalog(services.engine.catalog, service_id)
        upgrade = next((row for row in rows if row.id == upgrade_id), None)
        warnings = (e.EntityWarning(WITHOUT_HISTORY),)
        if upgrade is None:
            raise NO_HISTORY(upgrade_id=upgrade_id)
    if upgrade is None:
        raise UnknownUpgrade(upgrade_id)
    shown = _with_progress(upgrade, services, service_id)
    return e.UpgradeDescriptionEntity(
        statement_text=text, upgrade_description=shown, warnings=(*warnings, *_slow([shown]))
    )


def _without_unseen(upgrade: UpgradeDescription, request: Request) -> UpgradeDescription:
    """Return it without the statements that name sources the user does not see."""

    def shown(statement: str) -> str:
        seen = request.requester.sees_text(statement, upgrade.source, request.engine.catalog)
        return statement if seen else ""

    former, now = shown(upgrade.former_statement), shown(upgrade.statement)
    return replace(upgrade, former_statement=former, statement=now)


def with_former(refused: StatementError, services: Services) -> StatementError:
    """Say which statement an upgrade in place has replaced, if a rollback needs a version for it.

    Not one that lacks columns which the result has now: it would be refused. Any other error stays
    as it is.
    """
    if not isinstance(refused, NoFormerVersion):
        return refused
    query = refused.query
    for upgrade in services.history.upgrades(query.id) or ():
        if upgrade.status == "switched" and upgrade.statement == query.statement:
            if _GROWN in upgrade.classes:
                return refused
            return NoFormerVersion(query, replacing(upgrade.former_statement, query.id))
    return refused


def replacing(statement: str, query_id: str) -> str:
    """Return the statement that created a query as one that may replace it."""
    head, *rest = statement.split(maxsplit=2)
    if head.upper() == "INSERT":
        return f"CREATE OR REPLACE QUERY {quote(query_id)} AS {statement}"
    if head.upper() != "CREATE" or (rest and rest[0].upper() == "OR"):
        return statement
    return f"{head} OR REPLACE {' '.join(rest)}"


def _service_id(request: Request) -> str:
    return request.settings.text("ksql.service.id")


def _is_known(name: str, catalog: Catalog) -> bool:
    return name in catalog.sources or catalog.query(name) is not None


def _query_ids(name: str, catalog: Catalog) -> tuple[QueryId, ...]:
    """Return the queries that write that source or have created it.

    Without such a source it is the query that has this id, or had it.
    """
    source = catalog.sources.get(name)
    if source is not None:
        created_by = () if source.created_by is None else (source.created_by,)
        return tuple(dict.fromkeys((*created_by, *(query.id for query in catalog.writers(name)))))
    query = catalog.query(name)
    return (QueryId(name) if query is None else query.id,)


def _recorded(
    ids: tuple[QueryId, ...] | None, services: Services
) -> Sequence[UpgradeDescription] | None:
    """Return what the history has of all queries or of some, newest first; None if it is away."""
    if ids is None or len(ids) == 1:
        return services.history.upgrades(None if ids is None else ids[0])
    rows: list[UpgradeDescription] = []
    for query_id in ids:
        of_query = services.history.upgrades(query_id)
        if of_query is None:
            return None
        rows += of_query
    return sorted(rows, key=lambda row: row.begun or 0, reverse=True)


def _of_catalog(catalog: Catalog, service_id: str) -> Iterator[UpgradeDescription]:
    """Yield the rebuilds that are under way, and the cut-overs that can be rolled back."""
    for rebuild in catalog.rebuilds.values():
        old = catalog.queries[rebuild.candidate.id]
        yield _building(rebuild, old, service_id)
    for former in catalog.former_versions.values():
        yield _switched(former, service_id)


def _building(rebuild: Rebuild, old: PersistentQuery, service_id: str) -> UpgradeDescription:
    candidate = rebuild.candidate
    return UpgradeDescription(
        id=_id(rebuild, service_id),
        query_id=candidate.id,
        source=candidate.sink,
        mode=rebuild.mode,
        classes=(),
        status="building",
        former_statement=old.statement,
        statement=candidate.statement,
    )


def _switched(former: FormerVersion, service_id: str) -> UpgradeDescription:
    return replace(_building(former.replaced_by, former.query, service_id), status="switched")


def _id(rebuild: Rebuild, service_id: str) -> str:
    offset = rebuild.candidate.offset if rebuild.rollback else None
    return rebuild.candidate.version.upgrade_id(service_id, offset)


def _with_progress(
    upgrade: UpgradeDescription, services: Services, service_id: str
) -> UpgradeDescription:
    """Add how far a rebuild has come, if it runs on this server."""
    rebuild = services.engine.catalog.rebuilds.get(QueryId(upgrade.query_id))
    if rebuild is None or upgrade.status != "building" or upgrade.id != _id(rebuild, service_id):
        return upgrade
    version = rebuild.candidate.version
    progress = services.engine.runner.progress(version)
    if progress is None:
        return upgrade
    growth = services.rebuild_growth(version)
    problem = present_problem(progress, services.rebuild_problem(version))
    problem = problem or (str(growth) if growth else "")
    return replace(upgrade, progress=_progress(progress, problem, growth, services.now_ms()))


def _progress(
    progress: BuildProgress, problem: str, growth: CatchUpSpeed | None, now_ms: int
) -> UpgradeProgress:
    behind_s, read = None if growth else seconds_behind(progress), records_read(progress)
    return UpgradeProgress(
        records_read=read,
        records_left=records_to_read(progress),
        percent=percent(progress),
        records_per_second=round(
            growth.read_per_second if growth else progress.records_per_second, 1
        ),
        estimated_end=None if behind_s is None else now_ms + round(behind_s * 1000),
        lag_seconds=None if behind_s is None else round(behind_s, 1),
        state_bytes=progress.state_bytes,
        trouble=problem,
        input_per_second=round(growth.input_per_second, 1) if growth else None,
        bytes_read=round(read * progress.record_bytes) if progress.record_bytes else None,
    )


def _slow(rows: Iterable[UpgradeInfo]) -> tuple[e.EntityWarning, ...]:
    """Return a warning for each rebuild that does not catch up."""
    return tuple(
        e.EntityWarning(
            f"The rebuild of {row.query_id} {CatchUpSpeed(read.records_per_second, growth)}."
        )
        for row in rows
        if (read := row.progress) is not None and (growth := read.input_per_second) is not None
    )


HANDLERS: Handlers = {
    ast.DescribeUpgrade: describe,
}
