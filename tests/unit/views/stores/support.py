"""Short ways to fill a store."""

from __future__ import annotations

from random import Random

from ksql.core.records import Offset
from ksql.views.stores.base import after
from tests.stored.plain_store import PlainStore


def apply(store, changes, position):
    """Put and commit."""
    store.put(changes)
    store.commit(Offset(position))


def spoiled_plain_store(path):
    """Make a store of format 0 with a damaged row; its numbers lie in another block."""
    store = PlainStore(path)
    store.write([(b"key%d" % n, Random(n).randbytes(9_000)) for n in range(5)], position=5)
    store.flush()
    store.close()
    [file] = path.glob("*.sst")
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 32] = b"\xff" * 32
    file.write_bytes(data)
    return path


def files_of(store):
    """What a store keeps on its disk: to flush it, and to damage it."""
    return store._rocks


def database_of(store):
    """The database below a store, for rows that the store would not write."""
    return files_of(store)._db


def prefixed(store, prefix):
    """The rows whose key starts with those bytes, in order."""
    return store.range(prefix, after(prefix))
