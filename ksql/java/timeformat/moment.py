"""The values that a pattern prints: a DATE, a TIME, or a TIMESTAMP in a zone."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.core.types.times import DAY_MS
from ksql.core.types.times import civil as civil_of
from ksql.java.timeformat.errors import NotInMoment
from ksql.java.timeformat.fields import day_of_week, day_of_year, week_of_year
from ksql.java.timeformat.zones import Zone

if TYPE_CHECKING:
    from collections.abc import Callable

SUNDAY = 7

civil = functools.lru_cache(maxsize=4096)(civil_of)


@dataclass(frozen=True, slots=True)
class Moment:
    """A local date, a local time (milliseconds of the day), or both with their zone."""

    day: int | None = None
    millis: int | None = None
    zone: Zone | None = None
    offset_s: int | None = None

    def get(self, field: str) -> int:
        """Return the value of a field.

        Raises: NotInMoment.
        """
        if field in _OF_DAY:
            if self.day is None:
                raise NotInMoment(field)
            return _OF_DAY[field](self.day)
        if self.millis is None:
            raise NotInMoment(field)
        return _OF_TIME[field](self.millis)

    def offset(self) -> int:
        """Return the offset from UTC in seconds."""
        if self.offset_s is None:
            raise NotInMoment("OFFSET")
        return self.offset_s

    def in_zone(self) -> Zone:
        """Return the zone."""
        if self.zone is None:
            raise NotInMoment("ZONE")
        return self.zone

    def epoch_s(self) -> int:
        """Return the seconds since the epoch."""
        local_ms = (self.day or 0) * DAY_MS + (self.millis or 0)
        return local_ms // 1000 - (self.offset_s or 0)


def _era(day: int) -> int:
    return int(civil(day)[0] > 0)


def _year_of_era(day: int) -> int:
    year = civil(day)[0]
    return year if year > 0 else 1 - year


def _week_of_month(day: int) -> int:
    first = day - civil(day)[2] + 1
    return (day - first + day_of_week(first) % 7) // 7 + 1


_OF_DAY: dict[str, Callable[[int], int]] = {
    "YEAR": lambda day: civil(day)[0],
    "YEAR_OF_ERA": _year_of_era,
    "ERA": _era,
    "MONTH": lambda day: civil(day)[1],
    "DAY": lambda day: civil(day)[2],
    "DAY_OF_YEAR": day_of_year,
    "DAY_OF_WEEK": day_of_week,
    "LOCAL_DAY_OF_WEEK": lambda day: day_of_week(day) % 7 + 1,
    "QUARTER": lambda day: (civil(day)[1] + 2) // 3,
    "WEEK_YEAR": lambda day: week_of_year(day, SUNDAY, 1)[0],
    "WEEK": lambda day: week_of_year(day, SUNDAY, 1)[1],
    "WEEK_OF_MONTH": _week_of_month,
    "ALIGNED_WEEK": lambda day: (civil(day)[2] - 1) // 7 + 1,
}
_OF_TIME: dict[str, Callable[[int], int]] = {
    "HOUR": lambda ms: ms // 3_600_000,
    "CLOCK_HOUR": lambda ms: ms // 3_600_000 or 24,
    "HOUR_OF_HALF": lambda ms: ms // 3_600_000 % 12,
    "CLOCK_HOUR_OF_HALF": lambda ms: ms // 3_600_000 % 12 or 12,
    "HALF": lambda ms: ms // 43_200_000,
    "MINUTE": lambda ms: ms // 60_000 % 60,
    "SECOND": lambda ms: ms // 1000 % 60,
    "NANO": lambda ms: ms % 1000 * 1_000_000,
    "MILLI_OF_DAY": lambda ms: ms,
    "NANO_OF_DAY": lambda ms: ms * 1_000_000,
}
