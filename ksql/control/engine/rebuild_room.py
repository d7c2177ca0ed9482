"""The room that a rebuild needs: it has a second state until the cut-over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.control.engine.changes import BeginRebuild
from ksql.core import NO_ROOM
from ksql.exec.dataflow import plan_of, read_topics

if TYPE_CHECKING:
    from ksql.control.engine.context import Prepared
    from ksql.exec import Runner
    from ksql.sql.catalog import Catalog


def check_room(prepared: Prepared, catalog: Catalog, runner: Runner) -> None:
    """Refuse a rebuild whose state plainly does not fit next to that of the running query.

    The running state is the measure where the candidate reads its sources from the beginning. One
    that begins later may need less, and a former version has its state already.

    Raises: NO_ROOM.
    """
    for change in prepared.changes:
        match change:
            case BeginRebuild(rebuild) if not rebuild.rollback:
                if set(read_topics(plan_of(rebuild.candidate)).values()) != {"earliest"}:
                    continue
                query_id = rebuild.candidate.id
                progress = runner.progress(catalog.version_of(query_id))
                if progress is None or progress.free_bytes is None:
                    continue
                if progress.state_bytes > progress.free_bytes:
                    raise NO_ROOM(
                        query_id=query_id,
                        state_bytes=f"{progress.state_bytes:,}",
                        free_bytes=f"{progress.free_bytes:,}",
                    )
            case _:
                continue
