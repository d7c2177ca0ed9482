"""The configuration of a table's stores: type, directory, commits, and the rows' retention.

What a query was made with comes before the server's configuration, so that a changed default
reaches the tables that state nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ksql.core import QueryId, canonical
from ksql.core.types import UNIT_MS, format_timestamp
from ksql.exec.dataflow import has_one_writer, plan_of
from ksql.sql.plan import Aggregate, codec
from ksql.sql.plan.walk import nodes
from ksql.views.stores.store_types import SETTING, StoreType, store_type

if TYPE_CHECKING:
    from ksql.core import Settings
    from ksql.sql.catalog import Catalog, DataSource
    from ksql.views.stores.base import HiddenWindows


INTERVAL: Final = "commit.interval.ms"


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """The type of a table's stores, its RETENTION if it is windowed, its commit interval.

    ``sole``: whether one task at a time writes each partition, so no transactions overlap there.
    """

    kind: StoreType
    retention_ms: int | None
    commit_ms: int
    sole: bool = field(default=False, compare=False)


def store_config_of(catalog: Catalog, source: DataSource, settings: Settings) -> StoreConfig:
    """Return how the rows of a table (as ``queryable``) are kept."""
    query = catalog.queries.get(QueryId(str(source.created_by)))
    stated = {} if query is None else {canonical(name): text for name, text in query.properties}
    return StoreConfig(
        kind=store_type(stated.get(SETTING) or settings.text(SETTING)),
        retention_ms=retention_ms(catalog, source),
        commit_ms=int(stated.get(INTERVAL) or settings.number(INTERVAL)),
        sole=query is not None and _is_sole(query.plan),
    )


@lru_cache(maxsize=4096)  # of every table, at each change of the catalog
def _is_sole(text: str) -> bool:
    """Return whether each partition of a query's topic is written by one of its tasks."""
    try:
        plan = codec.loads(text)
    except (
        codec.UnreadablePlan
    ):  # what runs the query reports it; its topic has records all the same
        return False
    return has_one_writer(plan)


def retention_ms(catalog: Catalog, source: DataSource) -> int | None:
    """Return RETENTION of the windows that the table's query makes; None if it makes none."""
    if source.window is None or source.created_by is None:
        return None
    query = catalog.queries.get(QueryId(source.created_by))
    if query is None:
        return None
    kept = [
        node.window.retention_ms
        for node in nodes(plan_of(query).sink)
        if isinstance(node, Aggregate) and node.window is not None
    ]
    return max(kept, default=None)


def hidden_note(source: DataSource, hidden: HiddenWindows) -> str:
    """Return the note of an answer that lacks windows, as they are older than the RETENTION."""
    sessions = source.window is not None and source.window.size_ms is None
    kind = "sessions that end" if sessions else "windows that begin"
    first, last = format_timestamp(hidden.first), format_timestamp(hidden.last)
    return (
        f"RETENTION {_duration(hidden.retention_ms)} hides {kind} from {first} to {last}; "
        f"the topic {source.topic} may still have them"
    )


def _duration(length_ms: int) -> str:
    """Return a duration as a statement has it, in the largest unit that divides it."""
    whole = ((name, ms) for name, ms in UNIT_MS.items() if length_ms and length_ms % ms == 0)
    name, unit_ms = next(whole, ("MILLISECONDS", 1))
    count = length_ms // unit_ms
    return f"{count} {name.removesuffix('S') if count == 1 else name}"
