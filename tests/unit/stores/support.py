"""Short ways to fill a store."""

from __future__ import annotations

from ksql.base.ids import Offset


def apply(store, changes, position):
    """Put and commit."""
    store.put(changes)
    store.commit(Offset(position))
