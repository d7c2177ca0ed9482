from __future__ import annotations

from collections import Counter

import pandas as pd
import pytest

from server.demo.expected import HOUR_MS, Expected, compare, rows_of


@pytest.fixture
def expected():
    """Four departures of one carrier over two hours and partitions, one of another, cancelled."""
    flights = pd.DataFrame(
        {
            "id": [0, 1, 2, 3, 4],
            "tailnum": ["N0", "N1", None, "N3", "N4"],
            "carrier": ["UA", "UA", "UA", "UA", "DL"],
            "flight": [10, 11, 12, 13, 14],
            "origin": ["EWR"] * 5,
            "dest": ["ORD"] * 5,
            "distance": [100] * 5,
            "dep_delay": pd.array([20, 70, 30, 5, None], dtype="Int64"),
            "departed_ms": [10, 20, HOUR_MS, HOUR_MS + 1, HOUR_MS + 2],
            "partition": [0, 1, 0, 1, 0],
            "offset": [0, 0, 1, 1, 2],
        }
    )
    return Expected(flights, pd.DataFrame({"carrier": ["UA"], "name": ["United"]}))


def ids(rows, place):
    return sorted(row[place] for row in rows.elements())


def test_the_filter_changes_at_the_switch(expected):
    assert ids(expected.delayed({0: 3, 1: 2}), 2) == [0, 1, 2]  # old rule only
    assert ids(expected.delayed({}), 2) == [1]  # new rule only
    assert ids(expected.delayed({0: 1, 1: 0}), 2) == [0, 1]
    assert expected.delayed({}) == Counter([(20, "N1", 1, "UA", 11, "ORD", 70)])


def test_an_unknown_airline_has_no_row(expected):
    rows = expected.departures()
    assert ids(rows, 4) == [0, 1, 2, 3]
    assert rows[HOUR_MS, "UA", "United", None, 2, 12, "EWR-ORD", 30] == 1


def test_windows_and_the_added_column(expected):
    rows = expected.hourly({0: 1, 1: 1})
    assert rows == Counter(
        [
            ("UA", 0, 2, 90, 45.0, None),
            ("UA", HOUR_MS, 2, 35, 17.5, 30),
            ("DL", HOUR_MS, 1, 0, 0.0, None),
        ]
    )


def test_carriers(expected):
    assert expected.carriers() == Counter([("UA", 4, 400, 70), ("DL", 1, 100, None)])


def test_places_are_joined_by_id():
    from server.demo.data import Data  # noqa: PLC0415 only here

    data = Data(pd.DataFrame({"id": [0, 1], "x": [5, 6]}), pd.DataFrame())
    places = pd.DataFrame({"id": [1, 0], "partition": [3, 2], "offset": [0, 0]})
    flights = Expected.of(data, places).flights
    assert flights["partition"].tolist() == [2, 3]
    with pytest.raises(pd.errors.MergeError):
        Expected.of(data, pd.concat([places, places]))


def test_rows_are_plain_python():
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": ["x", None]})
    rows = rows_of(frame)
    assert rows == Counter([(1, "x"), (None, None)])
    assert all(type(value) in (int, str, type(None)) for row in rows for value in row)


def test_a_comparison_counts_duplicates():
    same = compare("it", Counter([(1,), (2,)]), Counter([(2,), (1,)]))
    assert same.equal
    assert same.rows == 2
    other = compare("it", Counter([(1,), (2,)]), Counter([(2,), (2,)]))
    assert (other.missing, other.surplus) == (((1,),), ((2,),))
    assert not other.equal
