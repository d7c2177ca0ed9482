"""A table's changes as KIP-904 writes them."""

from __future__ import annotations

import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.spark.task.packing import (
    BOTH,
    NEW,
    OLD,
    UnknownChange,
    pack,
    pack_changes,
    unpack,
    unpack_changes,
)

ROWS = st.lists(
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text("ab€", max_size=3)
    | st.binary(max_size=3),
    max_size=3,
).map(tuple)
CHANGES = st.one_of(st.tuples(ROWS, ROWS), st.tuples(ROWS, st.none()), st.tuples(st.none(), ROWS))


def read_as_the_kip_says(change):
    """Return new and old value; a reader to whom values are mere bytes."""
    flag = change[-1]
    if flag == 0:
        return None, change[:-1]
    if flag == 1:
        return change[:-1], None
    (length,) = struct.unpack(">i", change[:4])
    return change[4 : 4 + length], change[4 + length : -1]


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (None, ("tiger",), b"\x91\xa5tiger\x00"),
        (("tiger",), None, b"\x91\xa5tiger\x01"),
        (("tiger",), ("ape",), b"\x00\x00\x00\x07\x91\xa5tiger\x91\xa3ape\x02"),
        ((), (), b"\x00\x00\x00\x01\x90\x90\x02"),
    ],
)
def test_the_bytes_of_a_change(new, old, expected):
    assert pack_changes([new], [old]) == [expected]
    news, olds = unpack_changes([expected])
    assert (list(news), list(olds)) == ([new], [old])


@given(st.lists(CHANGES, max_size=12))
def test_all_three_forms_side_by_side(changes):
    news, olds = [new for new, _ in changes], [old for _, old in changes]
    packed = pack_changes(news, olds)
    unpacked = unpack_changes(packed)
    assert (list(unpacked[0]), list(unpacked[1])) == (news, olds)
    for change, new, old in zip(packed, news, olds, strict=True):
        assert change[-1] == (OLD if new is None else NEW if old is None else BOTH)
        read = read_as_the_kip_says(change)
        assert [None if part is None else tuple(unpack(part)) for part in read] == [new, old]


def test_decimals_keep_their_scale():
    changes = unpack_changes(pack_changes([(Decimal("1.10"),)], [(Decimal("1.1"),)]))
    assert str(changes) == "([(Decimal('1.10'),)], [(Decimal('1.1'),)])"


@pytest.mark.parametrize("change", [b"", pack((1,)) + b"\x03", b"\x91\xff"])
def test_other_bytes_are_refused(change):
    with pytest.raises(UnknownChange):
        unpack_changes([change])


@pytest.mark.parametrize("change", [b"\x91\x01", b"\x00\x00\x00\x02\x91\x01\x02"])
def test_bytes_that_are_cut_are_refused(change):
    with pytest.raises(ValueError, match=r"end|truncated|unexpected"):
        unpack_changes([change])


def test_a_change_has_a_row():
    with pytest.raises(UnknownChange):
        pack_changes([None], [None])
