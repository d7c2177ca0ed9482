"""A process that upgrades a store while it is fed, and ends itself at a point of its choice.

The points are all between two effects on the disk. In the mode ``in_place`` the store is fed from
the scripted topic of ``fed`` meanwhile; the copy changes places with it at a second start, which
this process makes, too, for the points that lie there.
"""

from __future__ import annotations

import itertools
from typing import Any

from ksql.core.types.windowed import kept_by
from ksql.views.stores import migrating_store, store_paths
from ksql.views.stores.format_upgrade import Upgrades
from ksql.views.stores.retention_store import RetentionStore
from ksql.views.stores.rocks import POSITION, Rocks, StoreBudget
from ksql.views.stores.store_paths import copy_of
from ksql.views.stores.txn import TxnStore
from tests.stored.plain_store import PlainStore
from tests.unit.views.stores import fed
from tests.unit.views.stores.fed import FIRST, RETENTION, SECOND, die
from tests.unit.views.stores.support import files_of

POINTS = (
    "copy without a position",
    "copy without rows",
    "second slice",
    "before it is whole",
    "whole",
    "before the first renaming",
    "between the renamings",
    "before the deletion",
    "after the deletion",
)
ONLINE_POINTS = ("between the commits", "after the commits")


def written(layout, path):
    """Make the store of format 0 that has read the first transaction."""
    last = {key: value for key, value, _ in (fed.record(layout, offset) for offset in FIRST)}
    numbers = {"position": FIRST[-1] + 2}
    if layout != "key":
        session = layout == "session"
        numbers["clock"] = max(kept_by(key, session=session) for key in last)
    store = PlainStore(path)
    store.write([row for row in last.items() if row[1] is not None], **numbers)
    store.close()


def retained(layout, store):
    """The store as a table of that layout has it."""
    return (
        store if layout == "key" else RetentionStore(store, RETENTION, sessions=layout == "session")
    )


def _before(owner, name, when=lambda *_: True):
    """End before a call that ``when`` picks."""
    real = getattr(owner, name)

    def called(*given, **more):
        if when(*given):
            die()
        return real(*given, **more)

    setattr(owner, name, called)


def arm(point, path):
    """Arrange for the end."""
    counted = itertools.count(1)
    match str(point):
        case "copy without a position":
            _before(Rocks, "write", lambda r, _c, n: r._path == copy_of(path) and POSITION in n)
        case "copy without rows":
            _before(Rocks, "write_raw")
        case "second slice":
            _before(Rocks, "write_raw", lambda *_: next(counted) > 1)
        case "before it is whole":
            _before(Rocks, "flush")
        case "between the commits":
            _before(TxnStore, "commit", lambda store, *_: files_of(store)._path == copy_of(path))
        case "before the first renaming":
            _before(store_paths, "_move", lambda old, _new: old == path)
        case "between the renamings":
            _before(store_paths, "_move", lambda old, _new: old == copy_of(path))
        case "before the deletion":
            _before(store_paths, "destroy", lambda gone: gone.suffix == ".old" and gone.exists())
        case _:
            pass  # the other points are in ``main``


def main(mode, layout, point, path):
    """Upgrade until the point; end in order if it does not come."""
    step: Any = migrating_store.StoreCopy.step
    setattr(migrating_store.StoreCopy, "step", lambda copy: step(copy, 4))  # noqa: B010 - for mypy
    arm(point, path)
    upgrades = Upgrades(mode, StoreBudget())
    store = upgrades.open("txn_rocksdb", path)
    if store is not None:
        writer, part = fed.filling(retained(layout, store), SECOND[-1] + 2)
        fed.feed(writer, part, layout, SECOND)
        writer.commit()
        if point == "after the commits":
            die()
    while upgrades.busy:
        upgrades.work()
    if not upgrades.places():  # it was at its end before
        return
    if point == "whole":
        die()
    if mode == "in_place":
        upgrades.leave(path)
        upgrades = Upgrades(mode, StoreBudget())
    upgrades.open("txn_rocksdb", path).close()
    if point == "after the deletion":
        die()
