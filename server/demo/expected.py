"""The demo's answers computed a second time, by pandas from the package's table.

Nothing of the service is used, except each record's offset and the offsets at which replaced
queries changed over. Before these the old rule holds, from them on the new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from server.demo.data import Data, plain
from server.demo.script import DELAY_AFTER_MIN, DELAY_BEFORE_MIN

Row = tuple[object, ...]
Rows = Counter[Row]
Offsets = Mapping[int, int]  # partition -> first offset of the new rule; a missing one is 0

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Expected:
    """The departures, each with its ``partition`` and ``offset`` in the topic, and the airlines."""

    flights: pd.DataFrame
    airlines: pd.DataFrame

    @classmethod
    def of(cls, data: Data, places: pd.DataFrame) -> Expected:
        """Join the flights with ``places``, which has the columns id, partition, offset."""
        return cls(data.flights.merge(places, on="id", validate="one_to_one"), data.airlines)

    def after(self, switch: Offsets) -> pd.Series:
        """Return whether a record belongs to the new rule."""
        starts = self.flights["partition"].map(lambda partition: switch.get(int(partition), 0))
        return self.flights["offset"] >= starts

    def delayed(self, switch: Offsets) -> Rows:
        """Return the filtered stream: time, key, then the values."""
        least = np.where(self.after(switch), DELAY_AFTER_MIN, DELAY_BEFORE_MIN)
        late = (self.flights["dep_delay"] > least).fillna(False)
        names = ["departed_ms", "tailnum", "id", "carrier", "flight", "dest", "dep_delay"]
        return rows_of(self.flights.loc[late, names])

    def departures(self) -> Rows:
        """Return the stream with the airlines' names."""
        joined = self.flights.merge(self.airlines, on="carrier")
        joined["route"] = joined["origin"] + "-" + joined["dest"]
        names = ["departed_ms", "carrier", "name", "tailnum", "id", "flight", "route", "dep_delay"]
        return rows_of(joined[names])

    def hourly(self, switch: Offsets) -> Rows:
        """Return the table of windows: carrier, hour, number, sum, average, worst since."""
        flights = self.flights.assign(
            hour_ms=self.flights["departed_ms"] // HOUR_MS * HOUR_MS,
            since=self.flights["dep_delay"].where(self.after(switch)),
        )
        table = flights.groupby(["carrier", "hour_ms"], as_index=False).agg(
            departures=("id", "size"),
            delay=("dep_delay", "sum"),
            departed=("dep_delay", "count"),
            worst=("since", "max"),
        )
        departed = table["departed"].astype("float64")
        average = table["delay"].astype("float64").where(departed > 0, 0.0) / departed.clip(lower=1)
        table["average"] = average
        return rows_of(table[["carrier", "hour_ms", "departures", "delay", "average", "worst"]])

    def carriers(self) -> Rows:
        """Return the table for lookups: carrier, number, miles, worst delay."""
        table = self.flights.groupby("carrier", as_index=False).agg(
            departures=("id", "size"), miles=("distance", "sum"), worst=("dep_delay", "max")
        )
        return rows_of(table)


def rows_of(frame: pd.DataFrame) -> Rows:
    """Return the rows as tuples of Python's own values, missing ones as None."""
    return Counter(zip(*(plain(frame[name]) for name in frame.columns), strict=True))


@dataclass(frozen=True, slots=True)
class Check:
    """Two answers to the same question, compared."""

    what: str
    rows: int
    missing: tuple[Row, ...]
    surplus: tuple[Row, ...]

    @property
    def equal(self) -> bool:
        """Whether they agree."""
        return not self.missing and not self.surplus


def compare(what: str, expected: Rows, actual: Rows) -> Check:
    """Return how the answers differ, duplicates counted."""
    return Check(
        what,
        actual.total(),
        tuple((expected - actual).elements()),
        tuple((actual - expected).elements()),
    )
