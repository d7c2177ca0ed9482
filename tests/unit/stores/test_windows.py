"""Windows of a key by ranges of keys: the same as by looking at all, and no other is looked at."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksql.stores.memory import MemoryStore
from ksql.stores.windows import ALL, windows_of
from ksql.types.windowed import WindowedKeys
from tests.unit.stores.support import apply

# keys that begin with one another, and one that goes on like a window of the shortest
KEYS = [b"", b"k", b"k" + b"\x00" * 8, b"k" + b"\x00" * 7 + b"\x05", b"kk", b"l"]
TIMES = range(0, 60, 5)


def store_of(keys):
    store = MemoryStore()
    sizes = [10] if keys.size_ms is not None else [1, 10, 25]
    rows = [keys.join(key, (at, at + size)) for key in KEYS for at in TIMES for size in sizes]
    apply(store, [(row, b"v", 0) for row in rows], 1)
    return store


TUMBLING, SESSIONS = WindowedKeys(10), WindowedKeys(None)
STORES = {keys: store_of(keys) for keys in (TUMBLING, SESSIONS)}
_bounds = st.tuples(st.integers(-20, 80), st.integers(-20, 80)) | st.just(ALL)


@settings(max_examples=300, deadline=None)
@given(
    keys=st.sampled_from(list(STORES)),
    key=st.sampled_from(KEYS),
    starts=_bounds,
    ends=_bounds,
)
def test_the_windows_of_a_key_between_times(keys, key, starts, ends):
    store = STORES[keys]
    wanted = []
    for row in store.scan():
        if len(row.key) != len(key) + keys.suffix_bytes or not row.key.startswith(key):
            continue
        start, end = keys.split(row.key)[1]
        if starts[0] <= start <= starts[1] and ends[0] <= end <= ends[1]:
            wanted.append(row)
    assert list(windows_of(store, keys, key, starts, ends)) == wanted


@pytest.mark.parametrize(
    ("keys", "looked_at"), [(TUMBLING, 3), (SESSIONS, 9)], ids=["tumbling", "sessions"]
)
def test_only_the_windows_between_the_times_are_looked_at(keys, looked_at):
    rows = []

    class Counting(MemoryStore):
        def range(self, lo=None, hi=None):
            for row in super().range(lo, hi):
                rows.append(row)
                yield row

    store = Counting()
    apply(store, [row[:1] + row[1:] for row in STORES[keys].scan()], 1)
    found = list(windows_of(store, keys, b"l", (20, 30), (30, 40)))
    assert len(rows) <= looked_at
    assert found
