"""The arithmetic that the benchmark of a rebuild is judged by, against counting one by one."""

from __future__ import annotations

from collections import defaultdict

import orjson
import pytest

from tests.bench.rebuild_model import Records


def tables(records, count):
    by_column: dict[str, dict[int, tuple[int, int]]] = {}
    for column in "AB":
        rows = by_column[column] = defaultdict(lambda: (0, 0))
        for number in range(count):
            value = orjson.loads(records.value(number))
            counted, total = rows[value[column]]
            rows[value[column]] = counted + 1, total + value["V"]
    return by_column["A"], by_column["B"]


@pytest.mark.parametrize("count", [100, 250, 777])
def test_the_difference_is_that_of_the_rows(count):
    records = Records(100)
    old, new = tables(records, count)
    difference = records.difference(records.ends(count))
    assert difference.changed == sum(old[key] != new[key] for key in old.keys() & new.keys())
    assert difference.added == len(new.keys() - old.keys()) == records.shift
    assert difference.removed == len(old.keys() - new.keys()) == records.shift
    assert difference.changed + difference.equal == records.always
    assert difference.equal


def test_what_a_table_lacks_and_what_it_has_twice_is_counted():
    records = Records(100)
    _, rows = tables(records, 777)
    ends = records.ends(777)
    assert records.compare(ends, rows) == (0, 0, 0)
    (count, total), (other, _) = rows[3], rows[5]
    assert records.compare(ends, {**rows, 3: (count + 2, total)}) == (0, 2, 0)
    assert records.compare(ends, {**rows, 5: (other, -1)}) == (0, 0, 1)
    del rows[3]
    assert records.compare(ends, rows) == (count, 0, 0)
