from __future__ import annotations

import pytest

from ksql.exec.operators.memory import Bound, BoundedStore, TooMuchState, estimate


def test_a_state_has_a_bound():
    store = BoundedStore(Bound(100_000))
    for number in range(100):
        store.put(b"s", b"%d" % number, "x" * 100)
    with pytest.raises(TooMuchState, match="beyond 100000 bytes") as caught:
        store.put(b"s", b"more", "x" * 80_000)
    assert "ksql.query.push.state.max.bytes" in caught.value.hint


def test_several_values_at_once_count_as_well():
    store = BoundedStore(Bound(100_000))
    store.put_all(b"s", {b"a": "x" * 40_000, b"b": "x" * 40_000})
    store.put_all(b"s", {b"a": "x", b"b": "x" * 40_000})
    with pytest.raises(TooMuchState):
        store.put_all(b"s", {b"c": "x" * 80_000})


def test_the_stores_of_a_query_share_what_there_is():
    bound = Bound(100_000)
    first, second = BoundedStore(bound), BoundedStore(bound)
    first.put(b"s", b"k", "x" * 80_000)
    with pytest.raises(TooMuchState, match="beyond 100000 bytes"):
        second.put(b"s", b"k", "x" * 80_000)


def test_forgotten_and_replaced_entries_free_their_room():
    store = BoundedStore(Bound(100_000))
    for number in range(10_000):
        store.put(b"s", b"k", ["x" * (number % 1_000)])
        store.put(b"t", b"%d" % number, number)
        store.delete(b"t", b"%d" % number)
        if number % 10 == 0:
            store.put(b"u", b"%d" % number, "x" * 10_000)
            store.drop(b"u")
    assert list(store.scan(b"t")) == []
    assert store.get(b"s", b"k") == ["x" * 999]


def test_a_long_value_is_estimated_by_some_of_its_items():
    assert estimate("x" * 1_000) > 1_000
    assert 9_000_000 < estimate(["x" * 1_000] * 10_000) < 12_000_000
    assert estimate({"a": [1, {"b": "x" * 5_000}]}) > 5_000
    assert estimate([]) < 100
