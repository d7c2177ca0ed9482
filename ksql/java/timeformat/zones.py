"""Time zones as ``java.time.ZoneId`` names them."""

from __future__ import annotations

import datetime as dt
import functools
import os
import re
import time
import zoneinfo
from dataclasses import dataclass
from pathlib import Path

from ksql.java.timeformat.errors import UnknownZone

_OFFSET = re.compile(
    r"(?P<prefix>UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})"
    r"(?::?(?P<minutes>\d{2})(?::?(?P<seconds>\d{2}))?)?"
)
_FIRST = -62_135_596_800
_LAST = 253_402_300_799
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MAX_OFFSET = 18 * 3600
# Entries of the system's time-zone database that are no regions of java.time.
_NO_REGIONS = frozenset({"EST", "MST", "HST", "ROC", "Factory", "localtime", "posixrules"})
_NO_FOLDERS = ("posix/", "right/")


@dataclass(frozen=True)
class Zone:
    """A region of the time-zone database, or a fixed offset from UTC."""

    name: str
    fixed_s: int = 0
    region: zoneinfo.ZoneInfo | None = None

    def offset_s(self, epoch_s: int) -> int:
        """Return the offset from UTC at an instant, in seconds."""
        if self.region is None:
            return self.fixed_s
        return _seconds(self._at(epoch_s).utcoffset())

    def local_offset_s(self, local_s: int) -> int:
        """Return the offset at a wall clock's reading: the earlier one where there are two."""
        if self.region is None:
            return self.fixed_s
        clamped = min(max(local_s, _FIRST), _LAST)
        wall = (_EPOCH + dt.timedelta(seconds=clamped)).replace(tzinfo=self.region)
        return _seconds(wall.utcoffset())

    def abbreviation(self, epoch_s: int) -> str:
        """Return the short name at an instant: BST, PDT; the id if the zone has none."""
        if self.region is None:
            return self.name
        return self._at(epoch_s).tzname() or self.name

    def _at(self, epoch_s: int) -> dt.datetime:
        clamped = min(max(epoch_s, _FIRST + 86_400), _LAST - 86_400)
        return (_EPOCH + dt.timedelta(seconds=clamped)).astimezone(self.region)


def _seconds(offset: dt.timedelta | None) -> int:
    return int(offset.total_seconds()) if offset is not None else 0


UTC = Zone("GMT")


@functools.lru_cache(maxsize=512)
def zone_of(name: str) -> Zone:
    """Return the zone of an id: a region, ``Z``, an offset, or UTC, GMT, UT with or without one.

    Raises: UnknownZone.
    """
    if name == "Z" or name in ("UTC", "GMT", "UT"):
        return Zone(name)
    if match := _OFFSET.fullmatch(name):
        return _fixed(name, match)
    if name in _NO_REGIONS or name.startswith(_NO_FOLDERS):
        raise UnknownZone(name)
    try:
        return Zone(name, region=zoneinfo.ZoneInfo(name))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownZone(name) from error


def _fixed(name: str, match: re.Match[str]) -> Zone:
    minutes, seconds = int(match["minutes"] or 0), int(match["seconds"] or 0)
    total = int(match["hours"]) * 3600 + minutes * 60 + seconds
    if total > _MAX_OFFSET or minutes > 59 or seconds > 59:
        raise UnknownZone(name)
    total = -total if match["sign"] == "-" else total
    return Zone((match["prefix"] or "") + offset_text(total, ":", "Z"), total)


def offset_text(offset_s: int, colon: str, zero: str) -> str:
    """Return ``+02:00``; the seconds only if there are any; ``zero`` for no offset."""
    if not offset_s:
        return zero
    minutes, seconds = divmod(abs(offset_s), 60)
    text = f"{'-' if offset_s < 0 else '+'}{minutes // 60:02d}{colon}{minutes % 60:02d}"
    return f"{text}{colon}{seconds:02d}" if seconds else text


@functools.cache
def system_zone() -> Zone:
    """Return the zone of this machine.

    The TZ variable, the system's zone file, else its offset now.
    """
    for name in _system_names():
        try:
            return zone_of(name)
        except UnknownZone:
            continue
    return Zone("system", -time.timezone)


def _system_names() -> list[str]:
    names = [os.environ.get("TZ", "").lstrip(":")]
    _, mark, region = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")
    if mark:
        names.append(region)
    return [name for name in names if name]
