from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.types import times


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("1970-01-01T00:00:00.010", 10),
        ("1970-01-01T00:00:01", 1000),
        ("2020", 1577836800000),
        ("2020-05", 1588291200000),
        ("2020-05-02", 1588377600000),
        ("2020-05-02T", 1588377600000),
        ("2020-05-02T10", 1588413600000),
        ("2020-05-02T24", 1588464000000),
        ("2020-05-02T24:00:00.000+01", 1588460400000),
        ("2020-05-02T10:30Z", 1588415400000),
        ("2019-01-01T00:00:00+0445", 1546283700000),
        ("2019-01-01T00:00:00-05:00", 1546318800000),
        ("2019-01-01T00:00:00+1", 1546297200000),
        (" 2020 ", 1577836800000),
        ("2019-02-31", 1551312000000),
        ("1969-12-31T23:59:59.999", -1),
    ],
)
def test_timestamps(text, millis):
    assert times.parse_timestamp(text) == millis


@given(st.integers(-(2**31), 2**31 - 1))
def test_days_and_dates(day):
    assert times.epoch_day(*times.civil(day)) == day


@pytest.mark.parametrize("date", [(2021, 2, 29), (0, 0, 1), (-5, 13, 1), (10000, 1, 32)])
def test_no_dates(date):
    with pytest.raises(ValueError, match=r"month|day"):
        times.epoch_day(*date)


@pytest.mark.parametrize(
    "text",
    ["foo", "", "2020-13-01", "2020-1-1", "2020-01-32", "2020-01T10:00", "2020-01-01T25:00:00.000",
     "2020-01-01T24:01", "2020-01-01T24:00:00.001",
     "2020-01-01T10:00:00+19", "2020-01-01T10:00:00+Nowhere", "1-2-3-4", "2020-01-01T10:0x"],
)  # fmt: skip
def test_no_timestamps(text):
    with pytest.raises(ValueError, match=r"."):
        times.parse_timestamp(text)


@pytest.mark.parametrize(
    ("text", "millis"),
    [("00:00:00.010", 10), ("00:00:01", 1000), ("00:01", 60000), ("23:59:59.999999999", 86399999)],
)
def test_times(text, millis):
    assert times.parse_time(text) == millis


@pytest.mark.parametrize("text", ["foo", "10", "24:00", "10:60", "1:00", "10:00:00."])
def test_no_times(text):
    with pytest.raises(ValueError, match=r"."):
        times.parse_time(text)


@pytest.mark.parametrize(
    ("text", "days"), [("1970-01-10", 9), ("1970-01", 0), ("1970", 0), ("1969-12-31", -1)]
)
def test_dates(text, days):
    assert times.parse_date(text) == days


def test_printing():
    assert times.format_time(4000) == "00:00:04"
    assert times.format_time(60_999) == "00:01"
    assert times.format_timestamp(-1) == "1969-12-31T23:59:59.999"
    assert times.format_date(4) == "1970-01-05"
    assert times.format_date(3_000_000) == "+10183-09-21"


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_timestamps_read_back(millis):
    assert times.parse_timestamp(times.format_timestamp(millis)) == millis


@given(st.integers(-719_162, 2_932_896))
def test_dates_read_back(days):
    assert times.parse_date(times.format_date(days)) == days
