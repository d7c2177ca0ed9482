"""``SimpleDateFormat`` patterns as commons-lang's FastDateFormat reads them: lenient, in GMT.

Fields out of range roll over (day 45 of a month), and text after the last field is ignored. As
there, each field takes what it can and gives nothing back, so that the time is linear in the text.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ksql.core import excerpt
from ksql.core.types import DAY_MS
from ksql.java.timeformat import names
from ksql.java.timeformat.errors import BadPattern, BadText, UnknownZone
from ksql.java.timeformat.fields import day_of_week, epoch_day, week_start
from ksql.java.timeformat.tokens import Letters, Literal, tokenize
from ksql.java.timeformat.zones import UTC, Zone

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
_DIGITS: Final = re.compile(r"\s*+(\d++)", re.ASCII)
_LARGEST = 2**31 - 1
_CENTURY_YEARS = 80


@dataclass(frozen=True, slots=True)
class _Field:
    """One run of letters of a pattern and how it is read: number, two-digit year, text, zone.

    ``width`` is how many digits a number has directly before another one, else 0.
    """

    name: str
    kind: str
    width: int = 0
    letter: str = ""

    def end(self, text: str, start: int) -> int:
        """Return where the field's part of the text ends; -1 if it does not start there."""
        if self.width:
            end = start + self.width
            return end if _is_digits(text[start:end], self.width) else -1
        match = _reader(self.letter).match(text, start)
        return match.end() if match else -1


_Part = _Field | str
"""A field, or text that stands for itself whatever its case."""


def parse_date(pattern: str, text: str) -> int:
    """Return the epoch day of a text.

    Raises: BadPattern; BadText, also if the text has a time of day.
    Source: Apache Commons Lang, FastDateFormat.
    """
    values: dict[str, int] = {}
    zone = UTC
    for field, part in _cut(pattern, text):
        if field.kind == "zone":
            zone = _zone(part, text, pattern)
        else:
            values[field.name] = _value(field, part, text, pattern)
    local_ms = _day(values) * DAY_MS + _millis(values)
    day, rest = divmod(local_ms - zone.local_offset_s(local_ms // 1000) * 1000, DAY_MS)
    if rest:
        raise BadText("date", text, pattern, "Date format contains time field")
    return day


def _cut(pattern: str, text: str) -> Iterator[tuple[_Field, str]]:
    """Return each field with its part of the text.

    Raises: BadPattern, BadText.
    """
    position = 0
    for part in _parts(pattern):
        if isinstance(part, _Field):
            end = part.end(text, position)
        else:
            end = position + len(part)
            end = end if text[position:end].lower() == part.lower() else -1
        if end < 0:
            raise BadText("date", text, pattern)
        if isinstance(part, _Field):
            yield part, text[position:end]
        position = end


@functools.lru_cache(maxsize=512)
def _parts(pattern: str) -> tuple[_Part, ...]:
    tokens = tokenize(pattern, sections=False)
    parts: list[_Part] = []
    for i, token in enumerate(tokens):
        if isinstance(token, Letters):
            after = tokens[i + 1] if i + 1 < len(tokens) else None
            parts.append(_field(pattern, token.letter, token.count, _is_number(after)))
        elif isinstance(token, Literal):
            parts.append(token.text)
    return tuple(parts)


def _is_number(token: object) -> bool:
    if not isinstance(token, Letters):
        return False
    return token.letter in _NUMBERS and not (token.letter in "ML" and token.count > 2)


def _field(pattern: str, letter: str, count: int, before_number: bool) -> _Field:
    if letter in _TEXTS and (letter not in "ML" or count > 2):
        return _Field(_TEXTS[letter][0], "text", letter=letter)
    if letter in _NUMBERS:
        two_digits = letter in "yY" and count <= 2
        kind = "short year" if two_digits else "number"
        return _Field(_NUMBERS[letter], kind, count if before_number else 0)
    if letter in "zZX":
        return _Field("ZONE", "zone", letter=letter)
    raise BadPattern(pattern, f"Illegal pattern component: {letter}")


@functools.cache
def _reader(letter: str) -> re.Pattern[str]:
    """Return what matches a text or a zone; a number where there is no letter."""
    if not letter:
        return _DIGITS
    known: Iterable[str] = ()
    if letter in _TEXTS:
        known = _by_name(letter)
    elif letter == "z":
        known = names.ids_by_name()
    choices = map(re.escape, sorted(known, key=len, reverse=True))
    first = () if letter in _TEXTS else (_OFFSET,)
    return re.compile("|".join((*first, *choices)), re.IGNORECASE | re.ASCII)


@functools.cache
def _by_name(letter: str) -> dict[str, int]:
    """Return the numbers of a letter's names, all in small letters."""
    _, lists, first = _TEXTS[letter]
    return {name.lower(): i + first for names_ in lists for i, name in enumerate(names_)}


def _is_digits(part: str, width: int) -> bool:
    return len(part) == width and part.isascii() and part.isdigit()


def _value(field: _Field, part: str, text: str, pattern: str) -> int:
    if field.kind == "text":
        return _by_name(field.letter)[part.lower()]
    digits = part.strip().lstrip("0") or "0"
    if len(digits) > len(str(_LARGEST)) or int(digits) > _LARGEST:
        raise BadText("date", text, pattern, f"{excerpt(digits)} is out of range")
    number = int(digits)
    if field.kind == "short year" and number < 100:
        start = time.gmtime().tm_year - _CENTURY_YEARS
        year = start - start % 100 + number
        return year if year >= start else year + 100
    return number


def _zone(part: str, text: str, pattern: str) -> Zone:
    try:
        return names.zone_named(part)
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
