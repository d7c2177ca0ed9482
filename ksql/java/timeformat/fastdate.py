"""``SimpleDateFormat`` patterns as commons-lang's FastDateFormat reads them: lenient, in GMT.

Fields out of range roll over (day 45 of a month), and text after the last field is ignored.
"""

from __future__ import annotations

import functools
import re
import time
from dataclasses import dataclass

from ksql.java.timeformat import names, zonenames
from ksql.java.timeformat.errors import BadPattern, BadText, UnknownZone
from ksql.java.timeformat.fields import day_of_week, epoch_day, week_start
from ksql.java.timeformat.tokens import Letters, Literal, tokenize
from ksql.java.timeformat.zones import UTC, Zone
from ksql.types.times import DAY_MS

_NUMBERS = {
    "y": "YEAR",
    "Y": "YEAR",
    "M": "MONTH",
    "L": "MONTH",
    "d": "DAY",
    "D": "DAY_OF_YEAR",
    "w": "WEEK",
    "W": "WEEK_OF_MONTH",
    "F": "WEEK_IN_MONTH",
    "u": "DAY_OF_WEEK",
    "H": "HOUR",
    "k": "CLOCK_HOUR",
    "K": "HALF_HOUR",
    "h": "CLOCK_HALF_HOUR",
    "m": "MINUTE",
    "s": "SECOND",
    "S": "MILLI",
}
# Letter -> field and names; the number of the first name.
_TEXTS = {
    "G": ("ERA", (names.ERAS,), 0),
    "M": ("MONTH", (names.MONTHS, names.SHORT_MONTHS), 1),
    "L": ("MONTH", (names.MONTHS, names.SHORT_MONTHS), 1),
    "E": ("DAY_OF_WEEK", (names.DAYS, names.SHORT_DAYS), 1),
    "a": ("HALF", (names.HALVES,), 0),
}
_OFFSET = r"(?:GMT)?[+-]\d{1,2}:?\d{2}|Z"
_CENTURY_YEARS = 80


@dataclass(frozen=True, slots=True)
class _Field:
    """One letter of the pattern and how it is read: number, two-digit year, text, zone."""

    name: str
    kind: str
    by_name: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Compiled:
    regex: re.Pattern[str]
    fields: tuple[_Field, ...]


def parse_date(pattern: str, text: str) -> int:
    """Return the epoch day of a text.

    Raises: BadPattern; BadText, also if the text has a time of day.
    Source: Apache Commons Lang, FastDateFormat.
    """
    compiled = _compiled(pattern)
    found = compiled.regex.match(text)
    if found is None:
        raise BadText("date", text, pattern)
    values: dict[str, int] = {}
    zone = UTC
    for field, part in zip(compiled.fields, found.groups(), strict=True):
        if field.kind == "zone":
            zone = _zone(part, text, pattern)
        else:
            values[field.name] = _value(field, part)
    local_ms = _day(values) * DAY_MS + _millis(values)
    day, rest = divmod(local_ms - zone.local_offset_s(local_ms // 1000) * 1000, DAY_MS)
    if rest:
        raise BadText("date", text, pattern, "Date format contains time field")
    return day


@functools.lru_cache(maxsize=512)
def _compiled(pattern: str) -> _Compiled:
    tokens = tokenize(pattern, sections=False)
    fields: list[_Field] = []
    pieces: list[str] = []
    for i, token in enumerate(tokens):
        if isinstance(token, Letters):
            after = tokens[i + 1] if i + 1 < len(tokens) else None
            field, piece = _field(pattern, token.letter, token.count, _is_number(after))
            fields.append(field)
            pieces.append(f"({piece})")
        elif isinstance(token, Literal):
            pieces.append(re.escape(token.text))
    return _Compiled(re.compile("".join(pieces), re.IGNORECASE | re.ASCII), tuple(fields))


def _is_number(token: object) -> bool:
    if not isinstance(token, Letters):
        return False
    return token.letter in _NUMBERS and not (token.letter in "ML" and token.count > 2)


def _field(pattern: str, letter: str, count: int, before_number: bool) -> tuple[_Field, str]:
    if letter in _TEXTS and (letter not in "ML" or count > 2):
        name, lists, first = _TEXTS[letter]
        by_name = {n.lower(): i + first for ns in lists for i, n in enumerate(ns)}
        longest = sorted(by_name, key=len, reverse=True)
        return _Field(name, "text", by_name), "|".join(map(re.escape, longest))
    if letter in _NUMBERS:
        two_digits = letter in "yY" and count <= 2
        kind = "short year" if two_digits else "number"
        # A number directly before another one has exactly its own width.
        piece = rf"\d{{{count}}}" if before_number else r"\s*\d+"
        return _Field(_NUMBERS[letter], kind, {}), piece
    if letter in "zZX":
        known = [] if letter != "z" else sorted(zonenames.ids_by_name(), key=len, reverse=True)
        return _Field("ZONE", "zone", {}), "|".join([_OFFSET, *map(re.escape, known)])
    raise BadPattern(pattern, f"Illegal pattern component: {letter}")


def _value(field: _Field, part: str) -> int:
    if field.kind == "text":
        return field.by_name[part.lower()]
    number = int(part)
    if field.kind == "short year" and number < 100:
        start = time.gmtime().tm_year - _CENTURY_YEARS
        year = start - start % 100 + number
        return year if year >= start else year + 100
    return number


def _zone(part: str, text: str, pattern: str) -> Zone:
    try:
        return zonenames.zone_named(part)
    except UnknownZone as error:
        raise BadText("date", text, pattern, str(error)) from error


def _day(values: dict[str, int]) -> int:
    year = values.get("YEAR", 1970)
    if values.get("ERA") == 0:
        year = 1 - year
    if "MONTH" not in values and "DAY" not in values:
        if "DAY_OF_YEAR" in values:
            return epoch_day(year, 1, 1) + values["DAY_OF_YEAR"] - 1
        if "WEEK" in values:
            start = week_start(year, 7, 1) + (values["WEEK"] - 1) * 7
            return start + values.get("DAY_OF_WEEK", 7) % 7
    months = values.get("MONTH", 1) - 1
    first = epoch_day(year + months // 12, months % 12 + 1, 1)
    if "DAY_OF_WEEK" in values and "DAY" not in values:
        return first + (values["DAY_OF_WEEK"] - day_of_week(first)) % 7
    return first + values.get("DAY", 1) - 1


def _millis(values: dict[str, int]) -> int:
    hour = values.get("HOUR", values.get("CLOCK_HOUR", 0) % 24)
    if "HOUR" not in values and "CLOCK_HOUR" not in values:
        of_half = values.get("HALF_HOUR", values.get("CLOCK_HALF_HOUR", 0) % 12)
        hour = of_half + 12 * values.get("HALF", 0)
    seconds = (hour * 60 + values.get("MINUTE", 0)) * 60 + values.get("SECOND", 0)
    return seconds * 1000 + values.get("MILLI", 0)
