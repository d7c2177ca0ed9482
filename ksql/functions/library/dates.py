"""Dates, times, timestamps: sums, texts, zones."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from ksql.core.types import DAY_MS, UNIT_MS, wrap64
from ksql.functions.build import family
from ksql.functions.spec import Scalar
from ksql.java import EvaluationError
from ksql.java.timeformat import (
    UTC,
    date_moment,
    formatter,
    parse_date,
    parse_day,
    parse_time,
    parse_timestamp,
    system_zone,
    time_moment,
    timestamp_moment,
    zone_of,
)


class NullText(EvaluationError):
    """An old parsing function got NULL."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} cannot parse NULL")


def _days(millis: int) -> int:
    """Return whole days, towards zero."""
    return millis // DAY_MS if millis >= 0 else -(-millis // DAY_MS)


def _date(sign: int) -> Callable[[str, int, int], int]:
    return lambda unit, count, day: _days(day * DAY_MS + sign * count * UNIT_MS[unit])


def _time(sign: int) -> Callable[[str, int, int], int]:
    return lambda unit, count, millis: (millis + sign * count * UNIT_MS[unit]) % DAY_MS


def _timestamp(sign: int) -> Callable[[str, int, int], int]:
    return lambda unit, count, millis: wrap64(millis + sign * count * UNIT_MS[unit])


def convert_tz(millis: int, source: str, target: str) -> int:
    """Return the timestamp moved by what the second zone is ahead of the first at that instant."""
    seconds = millis // 1000
    ahead = zone_of(target).offset_s(seconds) - zone_of(source).offset_s(seconds)
    return millis + ahead * 1000


def unix_date() -> int:
    """Return today as an epoch day, where this machine is."""
    now = int(time.time())
    return (now + system_zone().offset_s(now)) // 86_400


def format_date(day: int, pattern: str) -> str:
    """Return a DATE by a pattern."""
    return formatter(pattern).show(date_moment(day))


def format_time(millis: int, pattern: str) -> str:
    """Return a TIME by a pattern."""
    return formatter(pattern).show(time_moment(millis))


def format_timestamp(millis: int, pattern: str, zone: str | None = None) -> str:
    """Return a TIMESTAMP by a pattern, as the clocks of a zone show it (default GMT)."""
    where = UTC if zone is None else zone_of(zone)
    return formatter(pattern).show(timestamp_moment(millis, where))


def _system_format(millis: int, pattern: str, zone: str | None = None) -> str:
    where = system_zone() if zone is None else zone_of(zone)
    return formatter(pattern).show(timestamp_moment(millis, where))


def _parse_timestamp(text: str, pattern: str, zone: str | None = None) -> int:
    return parse_timestamp(pattern, text, UTC if zone is None else zone_of(zone))


def string_to_date(text: str | None, pattern: str | None) -> int:
    """Return the epoch day of a text."""
    if text is None or pattern is None:
        raise NullText("STRINGTODATE")
    return parse_day(pattern, text)


def string_to_timestamp(text: str | None, pattern: str | None, zone: str | None = None) -> int:
    """Return the epoch milliseconds of a text, in this machine's zone unless another is given."""
    if text is None or pattern is None:
        raise NullText("STRINGTOTIMESTAMP")
    where = system_zone() if zone is None else zone_of(zone)
    return parse_timestamp(pattern, text, where)


def _sums(kind: str, row: Callable[[int], Callable[[str, int, int], int]], sign: int) -> Scalar:
    names = ("INTERVALUNIT unit", "INT interval", f"{kind} {kind.lower()}")
    return Scalar(names, kind, row(sign))


def _zoned(
    first: str,
    returns: str,
    row: Callable[..., object],
    nulls: Literal["propagate", "pass"] = "propagate",
) -> tuple[Scalar, Scalar]:
    """Return the overloads without and with a zone."""
    params = (first, "STRING formatPattern")
    return (
        Scalar(params, returns, row, nulls=nulls),
        Scalar((*params, "STRING timeZone"), returns, row, nulls=nulls),
    )


DATES = family(
    "DATE / TIME",
    {
        "unix_timestamp": (
            "Milliseconds since 1970: now, or of a timestamp.",
            Scalar((), "BIGINT", lambda: int(time.time() * 1000), volatile=True),
            Scalar(("TIMESTAMP timestamp",), "BIGINT", lambda value: value, "({0})"),
        ),
        "unix_date": (
            "Days since 1970: today, or of a date.",
            Scalar((), "INT", unix_date, volatile=True),
            Scalar(("DATE date",), "INT", lambda value: value, "({0})"),
        ),
        "from_unixtime": (
            "The timestamp of so many milliseconds since 1970.",
            Scalar(("BIGINT milliseconds",), "TIMESTAMP", lambda value: value, "({0})"),
        ),
        "from_days": (
            "The date of so many days since 1970.",
            Scalar(("int days",), "DATE", lambda value: value),
        ),
        "dateadd": ("A date so much later.", _sums("DATE", _date, 1)),
        "datesub": ("A date so much earlier.", _sums("DATE", _date, -1)),
        "timeadd": ("A time of day so much later.", _sums("TIME", _time, 1)),
        "timesub": ("A time of day so much earlier.", _sums("TIME", _time, -1)),
        "timestampadd": ("A timestamp so much later.", _sums("TIMESTAMP", _timestamp, 1)),
        "timestampsub": ("A timestamp so much earlier.", _sums("TIMESTAMP", _timestamp, -1)),
        "convert_tz": (
            "A timestamp moved from one time zone to another.",
            Scalar(
                ("TIMESTAMP timestamp", "STRING fromTimeZone", "STRING toTimeZone"),
                "TIMESTAMP",
                convert_tz,
            ),
        ),
        "format_date": (
            "A date as text by a pattern.",
            Scalar(("DATE date", "STRING formatPattern"), "STRING", format_date),
        ),
        "format_time": (
            "A time of day as text by a pattern.",
            Scalar(("TIME time", "STRING formatPattern"), "STRING", format_time),
        ),
        "format_timestamp": (
            "A timestamp as text by a pattern, in GMT or in the zone given.",
            *_zoned("TIMESTAMP timestamp", "STRING", format_timestamp),
        ),
        "parse_date": (
            "The date that a text spells by a pattern.",
            Scalar(
                ("STRING formattedDate", "STRING formatPattern"),
                "DATE",
                lambda text, pattern: parse_date(pattern, text),
            ),
        ),
        "parse_time": (
            "The time of day that a text spells by a pattern.",
            Scalar(
                ("STRING formattedTime", "STRING formatPattern"),
                "TIME",
                lambda text, pattern: parse_time(pattern, text),
            ),
        ),
        "parse_timestamp": (
            "The timestamp that a text spells by a pattern, in GMT or in the zone given.",
            *_zoned("STRING formattedTimestamp", "TIMESTAMP", _parse_timestamp),
        ),
        "datetostring": (
            "An epoch day as text by a pattern (kept for old queries: see FORMAT_DATE).",
            Scalar(("int epochDays", "STRING formatPattern"), "STRING", format_date),
        ),
        "stringtodate": (
            "The epoch day that a text spells (kept for old queries: see PARSE_DATE).",
            Scalar(
                ("STRING formattedDate", "STRING formatPattern"),
                "INT",
                string_to_date,
                nulls="pass",
            ),
        ),
        "timestamptostring": (
            "Epoch milliseconds as text by a pattern (kept for old queries: FORMAT_TIMESTAMP).",
            *_zoned("long epochMilli", "STRING", _system_format),
        ),
        "stringtotimestamp": (
            "The epoch milliseconds that a text spells (kept for old queries: PARSE_TIMESTAMP).",
            *_zoned("STRING formattedTimestamp", "BIGINT", string_to_timestamp, "pass"),
        ),
    },
)
