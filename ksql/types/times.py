"""The text forms of DATE, TIME and TIMESTAMP.

Source: docs/sql/types.md#texts-of-times.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
import zoneinfo

DAY_MS = 86_400_000
UNIT_MS = {
    "DAYS": DAY_MS,
    "HOURS": 3_600_000,
    "MINUTES": 60_000,
    "SECONDS": 1000,
    "MILLISECONDS": 1,
}
_EPOCH = dt.date(1970, 1, 1)
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097  # the calendar repeats itself
_ZERO_TIME = "00:00:00.000"
_END_OF_DAY = ("24", "00", "00", "000")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)\Z", re.ASCII)
_STAMP_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)\.(\d{3})\Z", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?\Z", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d?)(?::?(\d\d)(?::?(\d\d))?)?\Z", re.ASCII)
_MAX_OFFSET_S = 18 * 3600


def _clock_ms(hour: str, minute: str, second: str | None, fraction: str | None) -> int:
    h, m, s = int(hour), int(minute), int(second or 0)
    if h > 23 or m > 59 or s > 59:
        raise ValueError("a field of the time is out of its range")
    return ((h * 60 + m) * 60 + s) * 1000 + int((fraction or "0").ljust(9, "0")) // 1_000_000


def _full_date(text: str) -> int:
    """Return epoch days of ``yyyy-MM-dd``; a day after the month's last is its last, as in Java."""
    match = _DATE.match(text)
    if not match:
        raise ValueError(f"'{text}' is not a date of the form yyyy-MM-dd")
    year, month, day = (int(group) for group in match.groups())
    if not 1 <= month <= 12 or not 1 <= day <= 31 or year == 0:
        raise ValueError(f"a field of the date '{text}' is out of its range")
    day = min(day, calendar.monthrange(year, month)[1])
    return (dt.date(year, month, day) - _EPOCH).days


def _completed(text: str) -> str:
    """Return the date with a missing month or day set to the first."""
    missing = 3 - len(text.split("-"))
    if not text or missing < 0:
        raise ValueError(f"'{text}' is not a date of the form yyyy-MM-dd")
    return text + "-01" * missing


def _zone_ms(zone: str, local_ms: int) -> int:
    """Return how far the zone is ahead of UTC at that local time."""
    if not zone.strip():
        return 0
    if match := _OFFSET.match(zone):
        sign, hours, minutes, seconds = match.groups()
        offset = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
        if offset > _MAX_OFFSET_S:
            raise ValueError(f"the zone '{zone}' is out of range")
        return (-offset if sign == "-" else offset) * 1000
    try:
        info = zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:  # a name is a path
        raise ValueError(f"unknown zone '{zone}'") from error
    local = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=local_ms)  # noqa: DTZ001 (a wall clock)
    offset_of = local.replace(tzinfo=info).utcoffset() or dt.timedelta()
    return round(offset_of.total_seconds() * 1000)


def parse_date(text: str) -> int:
    """Return epoch days of an ISO date; month and day may be missing.

    Raises: ValueError.
    """
    return _full_date(_completed(text.strip()))


def parse_time(text: str) -> int:
    """Return milliseconds of the day of an ISO local time.

    Raises: ValueError.
    """
    match = _TIME.match(text.strip())
    if not match:
        raise ValueError(f"'{text}' is not a time of the form HH:mm[:ss[.SSS]]")
    return _clock_ms(*match.groups())


def parse_timestamp(text: str) -> int:
    """Return epoch milliseconds of an ISO timestamp, maybe partial or with a zone (default UTC).

    Raises: ValueError.
    """
    text = text.strip()
    date, mark, rest = text.partition("T")
    if not mark:
        return _full_date(_completed(text)) * DAY_MS
    start = rest.find("+") if "+" in rest else rest.find("-")
    clock, zone = (rest, "") if start < 0 else (rest[:start], rest[start:])
    clock = clock.removesuffix("Z")
    match = _STAMP_TIME.match(clock + _ZERO_TIME[len(clock) :])
    if not match:
        raise ValueError(f"'{text}' is not a timestamp of the form yyyy-MM-dd'T'HH:mm:ss.SSS")
    midnight = match.groups() == _END_OF_DAY
    local = _full_date(date) * DAY_MS + (DAY_MS if midnight else _clock_ms(*match.groups()))
    return local - _zone_ms(zone, local)


def format_date(days: int) -> str:
    """Return the ISO text of a day; years beyond 9999 carry a plus, as in Java."""
    year, month, day = civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def epoch_day(year: int, month: int, day: int) -> int:
    """Return the epoch day of a date of any year, also before 1 and after 9999.

    Raises: ValueError for a date that does not exist.
    """
    near = 2000 + year % _CYCLE_YEARS
    return (dt.date(near, month, day) - _EPOCH).days + (year - near) // _CYCLE_YEARS * _CYCLE_DAYS


def civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of an epoch day, for any year (proleptic Gregorian)."""
    shifted = days + 719_468
    era, of_era = divmod(shifted, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    part = (5 * of_year + 2) // 153
    month = part + 3 if part < 10 else part - 9
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * part + 2) // 5 + 1


def format_time(millis: int) -> str:
    """Return the ISO text of a time without milliseconds; seconds only if there are any."""
    minutes, seconds = divmod(millis // 1000, 60)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{seconds:02d}" if seconds else text


def format_timestamp(millis: int) -> str:
    """Return ``yyyy-MM-ddTHH:mm:ss.SSS`` in UTC."""
    days, rest = divmod(millis, DAY_MS)
    seconds, fraction = divmod(rest, 1000)
    minutes, seconds = divmod(seconds, 60)
    clock = f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}.{fraction:03d}"
    return f"{format_date(days)}T{clock}"
