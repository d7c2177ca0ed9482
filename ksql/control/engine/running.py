"""The settings of a query's batches and stores, which do not change its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.control.planning.properties import STORE
from ksql.core.config import PROPERTIES
from ksql.sql.upgrade.verdict import Difference

if TYPE_CHECKING:
    from ksql.sql.catalog.model import PersistentQuery
    from ksql.sql.upgrade.verdict import Verdict

_UNSTATED: Final = "the server's value"
_OF_STORES: Final = frozenset({STORE, "commit.interval.ms"})
"""Settings of the tables' stores, which need no new start of the query."""


def runs_otherwise(old: PersistentQuery, new: PersistentQuery) -> bool:
    """Return whether a query must be started again to be as it is stated now."""
    return old.plan != new.plan or bool(_changed(old, new).keys() - _OF_STORES)


def with_settings(verdict: Verdict, old: PersistentQuery, new: PersistentQuery) -> Verdict:
    """Add the settings of how a query is run, as far as a replacement changes them."""
    return verdict.also(
        [
            Difference("configuration", name, f"{before} became {after}", allowed=True)
            for name, (before, after) in _changed(old, new).items()
            if name != STORE  # listed as STORE_TYPE
        ]
    )


def _changed(old: PersistentQuery, new: PersistentQuery) -> dict[str, tuple[str, str]]:
    """Return the settings whose stated values differ, before and after."""
    before, after = dict(old.properties), dict(new.properties)
    return {
        name: (before.get(name, _UNSTATED), after.get(name, _UNSTATED))
        for name, row in PROPERTIES.items()
        if row.part_of == "query" and before.get(name) != after.get(name)
    }
