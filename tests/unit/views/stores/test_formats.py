"""The table of formats: a further one is a row, and its way from the one before."""

from __future__ import annotations

import pytest

from ksql.views.stores import formats
from ksql.views.stores.base import OlderStore, Stored, StoredRow
from ksql.views.stores.format_upgrade import Upgrades
from ksql.views.stores.formats import CONVERTERS, FORMATS, KNOWN, UNKNOWN_TIME, Formats, StoreFormat
from ksql.views.stores.store_types import open_store
from tests.stored.plain_store import ROWS, sample
from tests.unit.views.stores.support import apply, database_of

LATER = StoreFormat(
    number=2,
    pack=lambda value, timestamp: b"\x02" + formats.pack(value, timestamp),
    unpack=lambda data: formats.unpack(data[1:]),
)


@pytest.fixture
def later(monkeypatch):
    """A version that has one more format."""
    known = Formats({**FORMATS, 2: LATER}, {**CONVERTERS, (1, 2): lambda data: b"\x02" + data})
    monkeypatch.setattr(formats, "KNOWN", known)


def test_each_format_has_a_way_to_the_newest():
    for number in range(KNOWN.newest):
        data = FORMATS[number].pack(b"v", 7)
        value = FORMATS[KNOWN.newest].unpack(KNOWN.convert(number)(data))
        assert value == FORMATS[number].unpack(data)


def test_rows_say_which_format_they_are():
    assert [row.number for row in FORMATS.values()] == list(FORMATS)
    for row in FORMATS.values():
        time = row.unpack(row.pack(b"", 7)).timestamp
        assert time == (7 if row.timed else UNKNOWN_TIME)


def upgraded(path, budget):
    upgrades = Upgrades("offline", budget)
    assert upgrades.open("txn_rocksdb", path) is None
    assert any(upgrades.work() for _ in range(1000))
    return upgrades.open("txn_rocksdb", path)


def test_the_next_format_is_a_row(tmp_path, budget, later):
    path = sample("txn_rocksdb", tmp_path / "0")
    store = upgraded(path, budget)
    assert list(store.scan()) == [StoredRow(*row, UNKNOWN_TIME) for row in ROWS]
    assert database_of(store).get(b"\x01key0") == b"\x02" + formats.pack(b"value0", UNKNOWN_TIME)
    apply(store, [(b"a", b"1", 9)], 9)
    assert store.get(b"a") == Stored(b"1", 9)
    store.close()


def test_a_store_of_today_under_the_next_format(tmp_path, budget, request):
    store = open_store("txn_rocksdb", tmp_path / "0", budget)
    apply(store, [(b"a", b"1", 9)], 9)
    store.close()
    request.getfixturevalue("later")
    with pytest.raises(OlderStore, match="format 1, this version writes format 2"):
        open_store("txn_rocksdb", tmp_path / "0", budget)
    upgrades = Upgrades("in_place", budget)
    proxy = upgrades.open("txn_rocksdb", tmp_path / "0")
    apply(proxy, [(b"b", b"2", 10)], 10)
    assert list(proxy.scan()) == [(b"a", b"1", 9), (b"b", b"2", 10)]  # that format has times
    proxy.close()
    upgrades.leave(tmp_path / "0")
    store = upgraded(tmp_path / "0", budget)
    assert list(store.scan()) == [(b"a", b"1", 9), (b"b", b"2", 10)]
    assert store.position() == 10
    store.close()
