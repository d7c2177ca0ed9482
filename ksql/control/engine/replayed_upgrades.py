"""The rebuilds that the command topic knows, for a history that has lost them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ksql.control.engine.changes import BeginRebuild, Change, CutOverQuery, EndQuery, EndRebuild
from ksql.control.engine.command_execution import Upgrade, UpgradeHistory
from ksql.control.engine.context import with_settings
from ksql.sql.plan import codec
from ksql.sql.upgrade import Verdict, validate_upgrade

if TYPE_CHECKING:
    from ksql.functions import Functions
    from ksql.sql.catalog import Catalog, PersistentQuery, Rebuild


class Replayed(NamedTuple):
    """A command that is replayed: the catalog before it, its offset and its user."""

    catalog: Catalog
    offset: int
    user: str = ""


def note_rebuild(
    history: UpgradeHistory, functions: Functions, command: Replayed, change: Change
) -> None:
    """Note what a change of a command means for a rebuild, if anything."""
    catalog = command.catalog
    match change:
        case BeginRebuild(rebuild) if rebuild.candidate.id in catalog.queries:
            old = catalog.queries[rebuild.candidate.id]
            upgrade = Upgrade(
                old=old,
                statement=rebuild.candidate.statement,
                verdict=_verdict(old, rebuild, functions),
                plan=rebuild.candidate.plan,
                offset=command.offset,
                user=command.user,
                mode=rebuild.mode,
            )
            version = rebuild.candidate.version
            history.rebuild_replayed(upgrade, version, rollback=rebuild.rollback)
        case CutOverQuery(query):
            history.rebuild_end_replayed(query.version, switched=True)
        case EndRebuild(query_id) | EndQuery(query_id) if query_id in catalog.rebuilds:
            version = catalog.rebuilds[query_id].candidate.version
            history.rebuild_end_replayed(version, switched=False)
        case _:
            pass


def _verdict(old: PersistentQuery, rebuild: Rebuild, functions: Functions) -> Verdict:
    """Compare the plans as if the candidate wrote to the result's topic already."""
    before = codec.loads(old.plan, functions)
    after = codec.loads(rebuild.candidate.plan, functions)
    after = replace(after, sink=replace(after.sink, topic=before.sink.topic))
    verdict, _ = validate_upgrade(before, after, functions, filled=rebuild.backfill)
    return with_settings(verdict, old, rebuild.candidate)
