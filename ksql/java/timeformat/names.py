"""The English names that java.time prints and reads: months, days, eras, and time zones.

A time zone has abbreviations and a long English name (by Babel).
"""

from __future__ import annotations

import datetime as dt
import functools
import zoneinfo
from typing import Literal

from babel.dates import get_timezone_name

from ksql.java.timeformat.zones import Zone, offset_text, zone_of

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HALVES = ("AM", "PM")
ERAS = ("BC", "AD")
LONG_ERAS = ("Before Christ", "Anno Domini")
QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
SHORT_QUARTERS = ("Q1", "Q2", "Q3", "Q4")
SHORT_MONTHS = tuple(name[:3] for name in MONTHS)
SHORT_DAYS = tuple(name[:3] for name in DAYS)


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_VARIANTS: tuple[Literal["generic", "standard", "daylight"], ...] = (
    "generic",
    "standard",
    "daylight",
)

# Whose names a text means if several zones have them.
_PREFERRED = (
    "America/Los_Angeles",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Anchorage",
    "Pacific/Honolulu",
    "America/Halifax",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Argentina/Buenos_Aires",
    "Europe/London",
    "Europe/Lisbon",
    "Europe/Paris",
    "Europe/Berlin",
    "Europe/Bucharest",
    "Europe/Moscow",
    "Africa/Johannesburg",
    "Africa/Lagos",
    "Africa/Maputo",
    "Africa/Nairobi",
    "Asia/Kolkata",
    "Asia/Karachi",
    "Asia/Jerusalem",
    "Asia/Shanghai",
    "Asia/Hong_Kong",
    "Asia/Tokyo",
    "Asia/Seoul",
    "Asia/Manila",
    "Asia/Jakarta",
    "Australia/Sydney",
    "Australia/Adelaide",
    "Australia/Perth",
    "Pacific/Auckland",
    "Pacific/Guam",
)


@functools.cache
def ids_by_name() -> dict[str, str]:
    """Return zone ids by what texts call them, in capitals: PST, PACIFIC TIME, EUROPE/PARIS."""
    ids = {"GMT": "GMT", "UTC": "UTC", "UT": "UT", "Z": "Z"}
    for name in _PREFERRED:
        region = zoneinfo.ZoneInfo(name)
        for month in (1, 7):
            short = dt.datetime(2020, month, 1, tzinfo=region).tzname() or ""
            if short.isalpha():
                ids.setdefault(short.upper(), name)
        for variant in _VARIANTS:
            long_name = get_timezone_name(region, "long", locale="en_US", zone_variant=variant)
            ids.setdefault(long_name.upper(), name)
    for name in sorted(zoneinfo.available_timezones()):
        ids.setdefault(name.upper(), name)
    return ids


def zone_named(text: str) -> Zone:
    """Return the zone that a text calls so, or whose offset it is.

    Raises: UnknownZone.
    """
    return zone_of(ids_by_name().get(text.upper(), text))


def long_name(zone: Zone, epoch_s: int) -> str:
    """Return ``Pacific Daylight Time``; the id of a zone that is an offset."""
    if zone.region is None:
        return {"UTC": "Coordinated Universal Time", "GMT": "Greenwich Mean Time"}.get(
            zone.name, zone.name
        )
    moment = (_EPOCH + dt.timedelta(seconds=epoch_s)).astimezone(zone.region)
    return get_timezone_name(moment, "long", locale="en_US")


def localized_offset(offset_s: int, full: bool) -> str:
    """Return ``GMT+2`` or ``GMT+02:00``."""
    if not offset_s:
        return "GMT"
    text = offset_text(offset_s, ":", "")
    if full:
        return "GMT" + text
    short = text[0] + text[1:].removeprefix("0")
    return "GMT" + short.removesuffix(":00")
