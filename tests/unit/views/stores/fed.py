"""A scripted topic that feeds a store, and a process that ends itself at a point of its choice.

The topic has transactions: a reader sees the records of those that are committed, whole. The
points are those of KIP-844, as far as they exist where stores are fed from topics.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from random import Random

from ksql.core.types.windowed import session_key, window_key
from ksql.views.store_writer import PartitionStore, StoreWriter
from ksql.views.stores.retention_store import RetentionStore
from ksql.views.stores.rocks import POSITION, Rocks, StoreBudget
from ksql.views.stores.store_types import open_store
from ksql.views.stores.write_batch import coalesced

PLACE = ("t", 0)
MINUTE = 60_000
RETENTION = 20 * MINUTE
LAYOUTS = ("key", "window", "session")
POINTS = (
    "open transaction",
    "before the commit",
    "in the commit",
    "after the commit",
    "full batch",
)
FIRST, SECOND, THIRD = range(40), range(41, 66), range(67, 90)
"""Offsets of three transactions; each is followed by a marker."""
MOST_BYTES = {"full batch": 1000}
"""A transaction is committed in parts beyond twice the bound."""


def record(layout, offset):
    """A record of the topic: keys come again, some are deleted, time moves on."""
    random = Random(offset)
    key, start = b"key%d" % random.randrange(40), offset // 3 * MINUTE
    if layout == "window":
        key = window_key(key, start)
    elif layout == "session":
        key = session_key(key, start, start + random.randrange(5) * MINUTE)
    value = None if random.random() < 0.2 else b"value %d" % offset
    return key, value, offset


def opened(kind, layout, path):
    """The store of a partition."""
    store = open_store(kind, path, StoreBudget())
    return (
        store if layout == "key" else RetentionStore(store, RETENTION, sessions=layout == "session")
    )


def filling(store, end, most_bytes=1 << 30):
    """What fills it, by nothing but its owner's commits and a full batch."""
    part = PartitionStore(place=PLACE, store=store, commit_s=1e9)
    part.resume(0, end)
    part.goal = -1  # to have caught up is no reason to commit here
    writer = StoreWriter(most_bytes, lambda: 0.0)
    writer.fill([part])
    return writer, part


def feed(writer, part, layout, transaction, piece=10):
    """Give the records of a transaction that are not known yet, in pieces.

    Returns: how many were given.
    """
    offsets = [offset for offset in transaction if offset >= part.reached]
    for start in range(0, len(offsets), piece):
        given = offsets[start : start + piece]
        batch = coalesced(record(layout, offset) for offset in given)
        writer.take({PLACE: batch}, {PLACE: given[-1] + 1})
    writer.take({}, {PLACE: transaction[-1] + 2})  # the marker
    return len(offsets)


def die():
    """End as a power failure of the process: nothing is flushed, nobody is asked."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_the_commit():
    """End when RocksDB has the batch with the position, before anybody knows."""
    write = Rocks.write

    def written(rocks, changes, numbers, **more):
        write(rocks, changes, numbers, **more)
        if numbers.get(POSITION) == SECOND[-1] + 2:
            die()

    Rocks.write = written  # type: ignore[method-assign, assignment] # to die in it


def main(kind, layout, point, path):
    """Fill a store until the point."""
    store = opened(kind, layout, Path(path))
    writer, part = filling(store, 0, MOST_BYTES.get(point, 1 << 30))
    feed(writer, part, layout, FIRST)
    writer.commit()
    writer.tidy()
    if point == "open transaction":
        writer.take({}, {PLACE: part.reached})  # its records are written, and shown to nobody
        die()
    feed(writer, part, layout, SECOND)
    if point in ("before the commit", "full batch"):
        die()
    if point == "in the commit":
        die_in_the_commit()
    writer.commit()
    die()
