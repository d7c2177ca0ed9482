"""Turns a parsed text's fields into a moment, as java.time resolves them; values to be printed.

A pattern prints a DATE, a TIME, or a TIMESTAMP in a zone.
"""

from __future__ import annotations

import calendar
import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from ksql.core.types import DAY_MS, civil, times
from ksql.core.types import civil as civil_of
from ksql.java.timeformat.errors import NotInMoment, OutOfRange
from ksql.java.timeformat.zones import Zone

epoch_day = functools.lru_cache(maxsize=4096)(times.epoch_day)
_month = functools.lru_cache(maxsize=4096)(calendar.monthrange)

DAY_NANOS = 86_400_000_000_000

# Field -> the values it may have. Hours of the half day are kept from 0 to 11.
RANGES = {
    "MONTH": (1, 12),
    "DAY": (1, 31),
    "DAY_OF_YEAR": (1, 366),
    "DAY_OF_WEEK": (1, 7),
    "HOUR": (0, 24),
    "CLOCK_HOUR": (0, 24),
    "HOUR_OF_HALF": (0, 11),
    "CLOCK_HOUR_OF_HALF": (0, 12),
    "MINUTE": (0, 59),
    "SECOND": (0, 59),
    "NANO": (0, 999_999_999),
    "NANO_OF_DAY": (0, DAY_NANOS - 1),
    "MILLI_OF_DAY": (0, 86_399_999),
    "QUARTER": (1, 4),
    "WEEK": (1, 53),
    "WEEK_OF_MONTH": (0, 5),
}


class Conflict(OutOfRange):
    """Two fields that contradict each other: a Monday that is a Tuesday."""


@dataclass(slots=True)
class Parsed:
    """The values read from a text: fields by name, and its zone or offset."""

    values: dict[str, int] = field(default_factory=dict)
    zone: Zone | None = None
    offset_s: int | None = None

    def put(self, name: str, value: int) -> None:
        """Note a field.

        Raises: OutOfRange.
        """
        low, high = RANGES.get(name, (value, value))
        if not low <= value <= high or self.values.setdefault(name, value) != value:
            raise OutOfRange(name, value)

    def has_date(self) -> bool:
        """Return whether any field is of a date."""
        return bool(_DATE_FIELDS & self.values.keys())


_DATE_FIELDS = frozenset(
    {"YEAR", "YEAR_OF_ERA", "ERA", "MONTH", "DAY", "DAY_OF_YEAR", "DAY_OF_WEEK", "QUARTER"}
    | {"WEEK_YEAR", "WEEK", "WEEK_OF_MONTH", "ALIGNED_WEEK"}
)


def day_of_week(days: int) -> int:
    """Return 1 for Monday to 7 for Sunday."""
    return (days + 3) % 7 + 1


def day_of_year(days: int) -> int:
    """Return 1 for the first of January."""
    return days - epoch_day(civil(days)[0], 1, 1) + 1


def week_of_year(days: int, first_day: int, least: int) -> tuple[int, int]:
    """Return the year and number of a day's week; weeks start on that day (1 = Monday).

    The first week is the one with at least ``least`` days in the year.
    """
    year = civil(days)[0] + 1
    while days < (start := week_start(year, first_day, least)):
        year -= 1
    return year, (days - start) // 7 + 1


def week_start(year: int, first_day: int, least: int) -> int:
    """Return the first day of the first week of a week-based year."""
    january = epoch_day(year, 1, 1)
    into = (day_of_week(january) - first_day) % 7
    return january - into + (0 if 7 - into >= least else 7)


def has_day(values: dict[str, int]) -> bool:
    """Return whether the fields say a whole date."""
    year = _year(values) is not None
    by_month = {"MONTH", "DAY"} <= values.keys() or "DAY_OF_YEAR" in values
    return (year and by_month) or {"WEEK_YEAR", "WEEK", "DAY_OF_WEEK"} <= values.keys()


def resolve_day(values: dict[str, int]) -> int:
    """Return the epoch day of the fields; what is missing is taken from 1970-01-01.

    Raises: OutOfRange, Conflict.
    """
    year = _year(values)
    if year is not None and "DAY_OF_YEAR" in values and "MONTH" not in values:
        return _by_day_of_year(year, values)
    if {"WEEK_YEAR", "WEEK", "DAY_OF_WEEK"} <= values.keys():
        start = week_start(values["WEEK_YEAR"], 1, 1)
        return start + (values["WEEK"] - 1) * 7 + values["DAY_OF_WEEK"] - 1
    if "DAY_OF_YEAR" in values and values["DAY_OF_YEAR"] == 366 and year is None:
        raise OutOfRange("DAY_OF_YEAR", 366)
    base = values.get("DAY_OF_YEAR", 1)
    month, day = civil(base - 1)[1:] if base > 1 else (1, 1)
    month, day = values.get("MONTH", month), values.get("DAY", day)
    whole = year is not None and {"MONTH", "DAY"} <= values.keys()
    year = 1970 if year is None else year
    days = epoch_day(year, month, min(day, _month(year, month)[1]))
    return _on_weekday(days, values, whole)


def _by_day_of_year(year: int, values: dict[str, int]) -> int:
    number = values["DAY_OF_YEAR"]
    if number == 366 and not calendar.isleap(year):
        raise OutOfRange("DAY_OF_YEAR", number)
    return _on_weekday(epoch_day(year, 1, 1) + number - 1, values, whole=True)


def _on_weekday(days: int, values: dict[str, int], whole: bool) -> int:
    weekday = values.get("DAY_OF_WEEK")
    if weekday is None or day_of_week(days) == weekday:
        return days
    if whole:
        raise Conflict("DAY_OF_WEEK", weekday)
    return days - day_of_week(days) + weekday


def _year(values: dict[str, int]) -> int | None:
    if "YEAR" in values:
        return values["YEAR"]
    if "YEAR_OF_ERA" not in values:
        return None
    year = values["YEAR_OF_ERA"]
    return year if values.get("ERA", 1) == 1 else 1 - year


def resolve_nanos(values: dict[str, int]) -> int:
    """Return the nanoseconds since midnight; 24:00 is a whole day.

    Raises: OutOfRange.
    """
    if "NANO_OF_DAY" in values:
        return values["NANO_OF_DAY"]
    if "MILLI_OF_DAY" in values:
        return values["MILLI_OF_DAY"] * 1_000_000
    hour = _hour(values)
    smaller = (values.get("MINUTE", 0) * 60 + values.get("SECOND", 0)) * 1_000_000_000 + values.get(
        "NANO", 0
    )
    if hour == 24 and smaller:
        raise OutOfRange("HOUR", hour)
    return hour * 3_600_000_000_000 + smaller


def _hour(values: dict[str, int]) -> int:
    if "HOUR" in values:
        return values["HOUR"]
    if "CLOCK_HOUR" in values:
        return values["CLOCK_HOUR"] % 24
    of_half = values.get("HOUR_OF_HALF", values.get("CLOCK_HOUR_OF_HALF", 0) % 12)
    return of_half + 12 * values.get("HALF", 0)


def has_hour(values: dict[str, int]) -> bool:
    """Return whether the fields say the time of day."""
    half = {"HOUR_OF_HALF", "CLOCK_HOUR_OF_HALF"} & values.keys() and "HALF" in values
    whole = {"HOUR", "CLOCK_HOUR", "NANO_OF_DAY", "MILLI_OF_DAY"} & values.keys()
    return bool(half or whole)


SUNDAY = 7

cached_civil = functools.lru_cache(maxsize=4096)(civil_of)


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
    return int(cached_civil(day)[0] > 0)


def _year_of_era(day: int) -> int:
    year = cached_civil(day)[0]
    return year if year > 0 else 1 - year


def _week_of_month(day: int) -> int:
    first = day - cached_civil(day)[2] + 1
    return (day - first + day_of_week(first) % 7) // 7 + 1


_OF_DAY: dict[str, Callable[[int], int]] = {
    "YEAR": lambda day: cached_civil(day)[0],
    "YEAR_OF_ERA": _year_of_era,
    "ERA": _era,
    "MONTH": lambda day: cached_civil(day)[1],
    "DAY": lambda day: cached_civil(day)[2],
    "DAY_OF_YEAR": day_of_year,
    "DAY_OF_WEEK": day_of_week,
    "LOCAL_DAY_OF_WEEK": lambda day: day_of_week(day) % 7 + 1,
    "QUARTER": lambda day: (cached_civil(day)[1] + 2) // 3,
    "WEEK_YEAR": lambda day: week_of_year(day, SUNDAY, 1)[0],
    "WEEK": lambda day: week_of_year(day, SUNDAY, 1)[1],
    "WEEK_OF_MONTH": _week_of_month,
    "ALIGNED_WEEK": lambda day: (cached_civil(day)[2] - 1) // 7 + 1,
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
