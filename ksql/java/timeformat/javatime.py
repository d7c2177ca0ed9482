"""``DateTimeFormatter``: compiles a pattern to printer and parser; a short way for plain digits.

Most texts follow patterns of plain digits of fixed width; these take a short cut.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from ksql.core.types import DAY_MS
from ksql.java.regex import Budget, TimedPattern, use
from ksql.java.timeformat import fields
from ksql.java.timeformat.elements import (
    Element,
    digits_of,
    element,
    fixed_text,
    is_fixed_number,
    literal,
    padded,
)
from ksql.java.timeformat.errors import BadPattern, BadText, NotInMoment, OutOfRange, UnknownZone
from ksql.java.timeformat.fields import Moment, Parsed, epoch_day
from ksql.java.timeformat.tokens import Letters, Literal, Optional, Token, tokenize
from ksql.java.timeformat.zones import UTC, Zone

_FEW_CHOICES = 4
"""Parts that may be absent or of several lengths: few multiply to nothing worth a time limit."""
_CHOICE = re.compile(r"\)\?|\*|\{\d+,\d+\}(?!\+)")
_LONGEST_SOURCE = 100_000  # characters: zones are thousands each


@dataclass(frozen=True, slots=True)
class Section:
    """Parts that may all be absent; when printing they are left out if one has no value."""

    parts: tuple[Part, ...]


Part = Element | Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatter:
    """A compiled pattern."""

    pattern: str
    parts: tuple[Part, ...]
    regex: re.Pattern[str] | TimedPattern
    readers: tuple[Element, ...]
    direct: Callable[[str], int | None] | None

    def show(self, moment: Moment) -> str:
        """Return the text of a moment.

        Raises: NotInMoment for a letter that the moment has no value for; OutOfRange.
        """
        return "".join(_shown(self.parts, moment))

    def read(self, text: str, kind: str) -> Parsed:
        """Return the fields of a text; ``kind`` names in messages what it should be.

        Raises: BadText.
        """
        match = self.regex.fullmatch(text)
        if match is None:
            raise BadText(kind, text, self.pattern)
        parsed = Parsed()
        try:
            for reader, part in zip(self.readers, match.groups(), strict=True):
                if part is not None:
                    reader.read(part, parsed)
        except (OutOfRange, UnknownZone) as error:
            raise BadText(kind, text, self.pattern, str(error)) from error
        return parsed


@functools.lru_cache(maxsize=512)
def formatter(pattern: str) -> Formatter:
    """Compile a pattern.

    Raises: BadPattern.
    Source: java.time.format.DateTimeFormatter, "Patterns for Formatting and Parsing".
    """
    parts = _parts(pattern, tokenize(pattern))
    source = _regex(parts)
    if len(source) > _LONGEST_SOURCE:
        raise BadPattern(pattern, "too many zones and names")
    choices = sum(1 for _ in _CHOICE.finditer(source))
    regex = (
        re.compile(source, re.IGNORECASE | re.ASCII)
        if choices <= _FEW_CHOICES
        else TimedPattern(source)
    )
    return Formatter(
        pattern=pattern,
        parts=parts,
        regex=regex,
        readers=tuple(_elements(parts)),
        direct=direct_parser(parts),
    )


def _parts(pattern: str, tokens: tuple[Token, ...]) -> tuple[Part, ...]:
    return tuple(_part(pattern, token) for token in tokens)


def _part(pattern: str, token: Token) -> Part:
    match token:
        case Letters(letter, count, pad):
            field = element(pattern, letter, count)
            return padded(field, pad) if pad else field
        case Literal(text):
            return literal(text)
        case Optional(parts):
            return Section(_parts(pattern, parts))


def _regex(parts: tuple[Part, ...]) -> str:
    pieces = []
    for i, part in enumerate(parts):
        if isinstance(part, Section):
            pieces.append(f"(?:{_regex(part.parts)})?")
        else:
            after = parts[i + 1] if i + 1 < len(parts) else None
            pieces.append(f"({part.regex(is_fixed_number(after))})")
    return "".join(pieces)


def _elements(parts: tuple[Part, ...]) -> Iterator[Element]:
    for part in parts:
        if isinstance(part, Section):
            yield from _elements(part.parts)
        else:
            yield part


def _shown(parts: tuple[Part, ...], moment: Moment) -> Iterator[str]:
    for part in parts:
        if not isinstance(part, Section):
            yield part.show(moment)
            continue
        try:
            yield "".join(_shown(part.parts, moment))
        except NotInMoment:
            yield ""


def date_moment(days: int) -> Moment:
    """Return a DATE to be printed."""
    return Moment(day=days)


def time_moment(millis: int) -> Moment:
    """Return a TIME to be printed."""
    return Moment(millis=millis)


def timestamp_moment(epoch_ms: int, zone: Zone) -> Moment:
    """Return a TIMESTAMP to be printed as the clocks of a zone show it."""
    offset = zone.offset_s(epoch_ms // 1000)
    day, millis = divmod(epoch_ms + offset * 1000, DAY_MS)
    return Moment(day, millis, zone, offset)


def parse_timestamp(pattern: str, text: str, zone: Zone = UTC) -> int:
    """Parse a text to epoch milliseconds; its zone wins, missing fields are 1970-01-01T00:00.

    Raises: BadPattern, BadText.
    Source: java.time.format.DateTimeFormatter; the parser of WITH (TIMESTAMP_FORMAT) is the same.
    """
    compiled = formatter(pattern)
    if compiled.direct is not None and (local := compiled.direct(text)) is not None:
        return local - zone.local_offset_s(local // 1000) * 1000
    parsed = compiled.read(text, "timestamp")
    try:
        day = fields.resolve_day(parsed.values)
        nanos = fields.resolve_nanos(parsed.values)
    except OutOfRange as error:
        raise BadText("timestamp", text, pattern, str(error)) from error
    local_ms = day * DAY_MS + nanos // 1_000_000
    offset = parsed.offset_s
    if offset is None or parsed.zone is not None:
        offset = (parsed.zone or zone).local_offset_s(local_ms // 1000)
    return local_ms - offset * 1000


def timestamp_parser(pattern: str, zone: Zone = UTC) -> Callable[[str], int]:
    """Return ``parse_timestamp`` for one pattern, which is checked now.

    Raises: BadPattern.
    """
    formatter(pattern)
    budget = Budget()

    def parse(text: str) -> int:
        use(budget)
        return parse_timestamp(pattern, text, zone)

    return parse


def parse_day(pattern: str, text: str) -> int:
    """Return the epoch day of a text that spells a whole date.

    Raises: BadPattern, BadText.
    """
    parsed = formatter(pattern).read(text, "date")
    if not fields.has_day(parsed.values):
        raise BadText("date", text, pattern, "the year, the month or the day is missing")
    try:
        return fields.resolve_day(parsed.values)
    except OutOfRange as error:
        raise BadText("date", text, pattern, str(error)) from error


def parse_time(pattern: str, text: str) -> int:
    """Parse a text to milliseconds of the day.

    Raises: BadPattern; BadText, also for a pattern with fields of a date.
    """
    parsed = formatter(pattern).read(text, "time")
    if parsed.has_date():
        raise BadText("time", text, pattern, "Time format contains date field")
    if not fields.has_hour(parsed.values):
        raise BadText("time", text, pattern, "the hour of the day is missing")
    try:
        return fields.resolve_nanos(parsed.values) // 1_000_000 % DAY_MS
    except OutOfRange as error:
        raise BadText("time", text, pattern, str(error)) from error


_FIELDS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "NANO")
_DEFAULTS = (1970, 1, 1, 0, 0, 0, 0)
_SAFE_DAY = 28


def direct_parser(parts: Sequence[object]) -> Callable[[str], int | None] | None:
    """Return a function from a text to local milliseconds.

    None if the pattern has anything unusual.

    The function gives None for texts that need a closer look: those that do not fit, and days after
    the 28th.
    """
    pieces: list[str] = []
    names: list[str] = []
    width = 3
    for part in parts:
        if (text := fixed_text(part)) is not None:
            pieces.append(re.escape(text))
        elif (digits := digits_of(part)) is not None and digits[0] in _FIELDS:
            name, count = digits
            names.append(name)
            pieces.append(rf"(\d{{{count}}})")
            width = count if name == "NANO" else width
        else:
            return None
    if len(set(names)) != len(names) or len(names) < 2:
        return None
    match = re.compile("".join(pieces), re.ASCII).fullmatch
    places = [names.index(f) if f in names else len(names) + i for i, f in enumerate(_FIELDS)]
    pick = itemgetter(*places)
    up, down = 10 ** max(3 - width, 0), 10 ** max(width - 3, 0)

    def parse(text: str) -> int | None:
        parsed = match(text)
        if parsed is None:
            return None
        year, month, day, hour, minute, second, part = pick(
            (*map(int, parsed.groups()), *_DEFAULTS)
        )
        if not (0 < day <= _SAFE_DAY and 0 < month < 13 and year) or hour > 23:
            return None
        if minute > 59 or second > 59:
            return None
        seconds = ((epoch_day(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
        millis: int = seconds * 1000 + part * up // down
        return millis

    return parse
