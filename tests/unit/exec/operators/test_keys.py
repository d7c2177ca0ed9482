from __future__ import annotations

import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.types.windowed import window_key
from ksql.exec.operators import keys
from ksql.exec.operators.memory import MemoryStore

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.floats(allow_nan=False)
    | st.decimals(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
tuples = st.lists(values, max_size=3).map(tuple)


@given(tuples)
def test_a_key_reads_back(key):
    assert tuple(keys.unpack(keys.pack(key))) == key


@given(tuples, tuples)
def test_equal_bytes_are_equal_values(first, second):
    if keys.pack(first) == keys.pack(second):
        assert first == second


def test_unsupported_key_types():
    with pytest.raises(TypeError):
        keys.pack((object(),))
    with pytest.raises(ValueError, match="ext_hook"):
        keys.unpack(b"\x91\xd4\x05x")
    assert keys.unpack(keys.pack((decimal.Decimal("1.50"),))) == [decimal.Decimal("1.50")]


@given(tuples, st.integers(0, 2**62), st.integers(0, 2**62))
def test_windows_have_keys_of_their_own(key, first, second):
    packed = keys.pack(key)
    assert (window_key(packed, first) == window_key(packed, second)) == (first == second)


def test_a_store_in_memory():
    store = MemoryStore()
    assert store.get(b"a", b"k") is None
    store.delete(b"a", b"k")
    store.put(b"a", b"k", [1])
    store.put(b"b", b"k", 2)
    store.load(b"a", [b"k", b"x"])
    assert (store.get(b"a", b"k"), list(store.scan(b"a"))) == ([1], [(b"k", [1])])
    store.delete(b"a", b"k")
    store.drop(b"b")
    store.drop(b"c")
    assert list(store.scan(b"a")) == list(store.scan(b"b")) == []
