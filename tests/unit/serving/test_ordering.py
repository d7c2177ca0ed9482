from __future__ import annotations

import math
from decimal import Decimal

import pytest

from ksql.core.types.model import BOOLEAN, BYTES, DOUBLE, INTEGER, STRING, Array, Map, Struct
from ksql.core.types.model import Decimal as DecimalType
from ksql.serving.ordering import ByteBudget, SortKey, TooManyRows, in_order, orderable

BIG = 10_000_000


def ordered(values, key, limit=None):
    chunks = iter([[(value, at) for at, value in enumerate(values)]])
    rows = in_order(chunks, [key], limit, ByteBudget("ORDER BY", BIG))
    return [value for chunk in rows for value, _ in chunk]


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (INTEGER, [-5, 0, 3, None]),
        (STRING, ["", "A", "a", "b", None]),
        (BYTES, [b"", b"\0", b"\xff", None]),
        (BOOLEAN, [False, True, None]),
        (DecimalType(4, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("7.25"), None]),
        (DOUBLE, [-math.inf, -1.5, 0.0, 2.0, math.inf, math.nan, None]),
    ],
)
@pytest.mark.parametrize("limit", [None, 100, 3])
def test_values_of_a_type(type_, values, limit):
    mixed = values[::2] + values[1::2]
    shown = [repr(each) for each in values]

    def sorted_by(key):
        return [repr(each) for each in ordered(mixed, key, limit)]

    assert sorted_by(SortKey(0, type_)) == shown[:limit]
    assert sorted_by(SortKey(0, type_, True, True)) == shown[::-1][:limit]
    nulls_first = [shown[-1], *shown[:-1]]
    assert sorted_by(SortKey(0, type_, False, True)) == nulls_first[:limit]
    nulls_last = [*shown[:-1][::-1], shown[-1]]
    assert sorted_by(SortKey(0, type_, True, False)) == nulls_last[:limit]


@pytest.mark.parametrize("limit", [None, 4, 2])
def test_equal_rows_stay_as_they_came(limit):
    rows = [(1, "a"), (0, "b"), (1, "c"), (0, "d")]
    for key, expected in ((SortKey(0, INTEGER), "bdac"), (SortKey(0, INTEGER, True), "acbd")):
        chunks = in_order(iter([rows[:2], rows[2:]]), [key], limit, ByteBudget("ORDER BY", BIG))
        assert "".join(name for chunk in chunks for _, name in chunk) == expected[:limit]


def test_chunks_are_empty_while_rows_are_read():
    key = SortKey(0, INTEGER)
    rows = in_order(iter([[(2,)], [], [(1,)]]), [key], None, ByteBudget("ORDER BY", BIG))
    assert list(rows) == [[], [], [], [(1,), (2,)]]


def test_room():
    room = ByteBudget("GROUP BY", 100)
    room.take(90)
    room.take(-50)
    room.take(60)
    with pytest.raises(TooManyRows, match="GROUP BY take more than 100 bytes"):
        room.take(1)


def test_orderable_types():
    assert orderable(BYTES)
    assert not any(map(orderable, (Array(STRING), Map(STRING, STRING), Struct(()))))
