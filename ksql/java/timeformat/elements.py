"""The parts of a compiled pattern: each prints a field of a moment and reads it from a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ksql.java.timeformat import names
from ksql.java.timeformat.errors import BadPattern, OutOfRange
from ksql.java.timeformat.zones import offset_text, zone_of

if TYPE_CHECKING:
    from ksql.java.timeformat.fields import Moment, Parsed


class Element(Protocol):
    """One part of a pattern.

    ``regex`` is what it matches in a text; ``read`` takes the match. ``adjacent``: the
    next part is a number of fixed width, so that digits are left for it.
    """

    def regex(self, adjacent: bool) -> str:
        """Return the regular expression of its text, without groups."""

    def read(self, text: str, parsed: Parsed) -> None:
        """Note what the text says."""

    def show(self, moment: Moment) -> str:
        """Return its text for a moment."""


@dataclass(frozen=True, slots=True)
class _Number:
    """A number of ``low`` to ``high`` digits; signs: never, normal (a minus), pad (a plus too)."""

    field: str
    low: int
    high: int
    signs: str = "never"

    def regex(self, adjacent: bool) -> str:
        if self.low == self.high:
            return rf"\d{{{self.low}}}"
        if self.signs == "pad":
            return rf"(?:\+\d{{{self.low + 1},{self.high}}}|-?\d{{{self.low}}})"
        greedy = "" if adjacent else "+"
        minus = "-?" if self.signs == "normal" else ""
        return rf"{minus}\d{{{self.low},{self.high}}}{greedy}"

    def read(self, text: str, parsed: Parsed) -> None:
        parsed.put(self.field, int(text))

    def show(self, moment: Moment) -> str:
        value = moment.get(self.field)
        digits = str(abs(value)).rjust(self.low, "0")
        if len(digits) > self.high or (value < 0 and self.signs == "never"):
            raise OutOfRange(self.field, value)
        if value < 0:
            return "-" + digits
        return "+" + digits if self.signs == "pad" and len(digits) > self.low else digits


@dataclass(frozen=True, slots=True)
class _TwoDigits:
    """The last two digits of a year of this century."""

    field: str
    base: int = 2000

    def regex(self, adjacent: bool) -> str:
        return r"\d{2}"

    def read(self, text: str, parsed: Parsed) -> None:
        parsed.put(self.field, self.base + int(text))

    def show(self, moment: Moment) -> str:
        return f"{abs(moment.get(self.field)) % 100:02d}"


@dataclass(frozen=True, slots=True)
class _Fraction:
    """The first digits of the fraction of a second."""

    width: int

    def regex(self, adjacent: bool) -> str:
        return rf"\d{{{self.width}}}"

    def read(self, text: str, parsed: Parsed) -> None:
        parsed.put("NANO", int(text.ljust(9, "0")))

    def show(self, moment: Moment) -> str:
        return f"{moment.get('NANO'):09d}"[: self.width]


@dataclass(frozen=True, slots=True)
class _Text:
    """A field by name; the first name stands for ``first``."""

    field: str
    values: tuple[str, ...]
    first: int = 1

    def regex(self, adjacent: bool) -> str:
        longest_first = sorted(set(self.values), key=len, reverse=True)
        return f"(?:{'|'.join(map(re.escape, longest_first))})"

    def read(self, text: str, parsed: Parsed) -> None:
        lowered = text.lower()
        index = next(i for i, name in enumerate(self.values) if name.lower() == lowered)
        parsed.put(self.field, index + self.first)

    def show(self, moment: Moment) -> str:
        return self.values[moment.get(self.field) - self.first]


@dataclass(frozen=True, slots=True)
class _Fixed:
    """Text that stands for itself."""

    text: str

    def regex(self, adjacent: bool) -> str:
        return re.escape(self.text)

    def read(self, text: str, parsed: Parsed) -> None:
        """Read nothing from the text: it says nothing."""

    def show(self, moment: Moment) -> str:
        return self.text


# Letter X, x or Z and its count -> minutes: always (m), if not zero (?m); seconds if not zero (?s).
_OFFSET_SHAPES = {1: ("", "?m"), 2: ("", "m"), 3: (":", "m"), 4: ("", "?s"), 5: (":", "?s")}


@dataclass(frozen=True, slots=True)
class _Offset:
    """An offset from UTC: ``+0200``, ``+02:00``, ``Z``."""

    shape: int
    zero: str

    def regex(self, adjacent: bool) -> str:
        colon, rest = _OFFSET_SHAPES[self.shape]
        minutes = rf"{colon}\d\d"
        tail = {"?m": f"(?:{minutes})?", "m": minutes, "?s": rf"{minutes}(?:{colon}\d\d)?"}[rest]
        zero = f"|{re.escape(self.zero)}" if self.zero else ""
        return rf"(?:[+-]\d\d{tail}{zero})"

    def read(self, text: str, parsed: Parsed) -> None:
        if text.lower() == self.zero.lower():
            parsed.offset_s = 0
            return
        digits = text[1:].replace(":", "").ljust(6, "0")
        hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:6])
        if hours > 18 or minutes > 59 or seconds > 59:
            raise OutOfRange("OFFSET", int(digits))
        total = hours * 3600 + minutes * 60 + seconds
        parsed.offset_s = -total if text[0] == "-" else total

    def show(self, moment: Moment) -> str:
        offset = moment.offset()
        if not offset:
            return self.zero
        colon, rest = _OFFSET_SHAPES[self.shape]
        text = offset_text(offset, colon, "")
        if rest == "?m":
            return text[:3] if text[3:5] == "00" else text[:5]
        return text if rest == "?s" else text[: 5 + len(colon)]


@dataclass(frozen=True, slots=True)
class _GmtOffset:
    """``GMT+2`` or ``GMT+02:00``."""

    full: bool

    def regex(self, adjacent: bool) -> str:
        return r"GMT(?:[+-]\d\d:\d\d(?::\d\d)?|[+-]\d{1,2}(?::\d\d){0,2})?"

    def read(self, text: str, parsed: Parsed) -> None:
        parsed.offset_s = zone_of("GMT" + text[3:]).fixed_s

    def show(self, moment: Moment) -> str:
        return names.localized_offset(moment.offset(), self.full)


@dataclass(frozen=True, slots=True)
class _ZoneName:
    """A zone by its id (V), its abbreviation (z) or its long name (zzzz)."""

    style: str

    def regex(self, adjacent: bool) -> str:
        known = sorted(names.ids_by_name(), key=len, reverse=True)
        offset = r"(?:UTC|GMT|UT)?[+-]\d{1,2}(?::?\d{2}){0,2}"
        return f"(?:{offset}|{'|'.join(map(re.escape, known))})"

    def read(self, text: str, parsed: Parsed) -> None:
        parsed.zone = names.zone_named(text)

    def show(self, moment: Moment) -> str:
        zone = moment.in_zone()
        if self.style == "id":
            return zone.name
        if self.style == "short":
            return zone.abbreviation(moment.epoch_s())
        return names.long_name(zone, moment.epoch_s())


@dataclass(frozen=True, slots=True)
class _Padded:
    """An element that is padded with blanks on the left."""

    inner: Element
    width: int

    def regex(self, adjacent: bool) -> str:
        return rf" *{self.inner.regex(adjacent)}"

    def read(self, text: str, parsed: Parsed) -> None:
        self.inner.read(text.lstrip(" "), parsed)

    def show(self, moment: Moment) -> str:
        text = self.inner.show(moment)
        if len(text) > self.width:
            raise OutOfRange("the padded field", len(text))
        return text.rjust(self.width)


Maker = Callable[[str, int], Element | None]


def _small(field: str) -> Maker:
    """Return one letter: as many digits as it takes; two: exactly two."""

    def make(_letter: str, count: int) -> Element | None:
        if count > 2:
            return None
        return _Number(field, count, 19 if count == 1 else 2, "normal" if count == 1 else "never")

    return make


def _named(field: str, short: tuple[str, ...], full: tuple[str, ...], first: int = 1) -> Maker:
    """Return one or two letters.

    A number; three: the short name, four: the full one, five: a letter.
    """
    number = _small(field)

    def make(letter: str, count: int) -> Element | None:
        if count <= 2 and letter not in "EG":
            return number(letter, count)
        if count > 5:
            return None
        narrow = tuple(name[:1] for name in full)
        return _Text(field, full if count == 4 else narrow if count == 5 else short, first)

    return make


def _year(field: str) -> Maker:
    def make(_letter: str, count: int) -> Element | None:
        if count == 2:
            return _TwoDigits(field)
        return _Number(field, count, 19, "normal" if count < 4 else "pad") if count <= 19 else None

    return make


def _up_to_three(letter: str, count: int) -> Element | None:
    if count == 1:
        return _Number("DAY_OF_YEAR", 1, 19, "normal")
    return _Number("DAY_OF_YEAR", count, 3) if count <= 3 else None


def _single(field: str) -> Maker:
    return lambda _letter, count: _Number(field, 1, 19, "normal") if count == 1 else None


def _wide(field: str) -> Maker:
    return lambda _letter, count: _Number(field, count, 19) if count <= 19 else None


def _half(_letter: str, count: int) -> Element | None:
    return _Text("HALF", names.HALVES, 0) if count == 1 else None


def _offset(letter: str, count: int) -> Element | None:
    match letter, count:
        case (("X" | "x"), (1 | 2 | 3 | 4 | 5)):
            zero = {1: "+00", 2: "+0000", 3: "+00:00", 4: "+0000", 5: "+00:00"}[count]
            return _Offset(count, "Z" if letter == "X" else zero)
        case "Z", (1 | 2 | 3):
            return _Offset(2, "+0000")
        case "Z", 4:
            return _GmtOffset(full=True)
        case "Z", 5:
            return _Offset(5, "Z")
        case "O", (1 | 4):
            return _GmtOffset(full=count == 4)
        case _:
            return None


def _zone(letter: str, count: int) -> Element | None:
    match letter, count:
        case "V", 2:
            return _ZoneName("id")
        case "z", (1 | 2 | 3):
            return _ZoneName("short")
        case (("z" | "v"), 4):
            return _ZoneName("long")
        case "v", 1:
            return _ZoneName("short")
        case _:
            return None


_ERA = _named("ERA", names.ERAS, names.LONG_ERAS, 0)
_MONTH = _named("MONTH", names.SHORT_MONTHS, names.MONTHS)
_QUARTER = _named("QUARTER", names.SHORT_QUARTERS, names.QUARTERS)
_WEEKDAY = _named("DAY_OF_WEEK", names.SHORT_DAYS, names.DAYS)
_LOCAL_DAYS = (names.DAYS[-1], *names.DAYS[:-1])
_LOCAL_WEEKDAY = _named("LOCAL_DAY_OF_WEEK", tuple(d[:3] for d in _LOCAL_DAYS), _LOCAL_DAYS)

LETTERS: dict[str, Maker] = {
    "G": _ERA,
    "u": _year("YEAR"),
    "y": _year("YEAR_OF_ERA"),
    "Y": _year("WEEK_YEAR"),
    "D": _up_to_three,
    "M": _MONTH,
    "L": _MONTH,
    "d": _small("DAY"),
    "Q": _QUARTER,
    "q": _QUARTER,
    "w": _small("WEEK"),
    "W": _single("WEEK_OF_MONTH"),
    "E": _WEEKDAY,
    "e": _LOCAL_WEEKDAY,
    "c": _LOCAL_WEEKDAY,
    "F": _single("ALIGNED_WEEK"),
    "a": _half,
    "h": _small("CLOCK_HOUR_OF_HALF"),
    "K": _small("HOUR_OF_HALF"),
    "k": _small("CLOCK_HOUR"),
    "H": _small("HOUR"),
    "m": _small("MINUTE"),
    "s": _small("SECOND"),
    "S": lambda _letter, count: _Fraction(count) if count <= 9 else None,
    "A": _wide("MILLI_OF_DAY"),
    "n": _wide("NANO"),
    "N": _wide("NANO_OF_DAY"),
    "V": _zone,
    "v": _zone,
    "z": _zone,
    "O": _offset,
    "X": _offset,
    "x": _offset,
    "Z": _offset,
}


def literal(text: str) -> Element:
    """Return an element for text that stands for itself."""
    return _Fixed(text)


def padded(inner: Element, width: int) -> Element:
    """Return an element with blanks before it up to a width."""
    return _Padded(inner, width)


def fixed_text(part: object) -> str | None:
    """Return the text of an element that stands for itself; None for other elements."""
    return part.text if isinstance(part, _Fixed) else None


def digits_of(part: object) -> tuple[str, int] | None:
    """Return an element's field and width if it is usually so many digits; else None."""
    if isinstance(part, _Fraction):
        return "NANO", part.width
    if isinstance(part, _Number) and (part.low == part.high or part.signs == "pad"):
        return part.field.replace("YEAR_OF_ERA", "YEAR"), part.low
    return None


def is_fixed_number(part: object) -> bool:
    """Return whether the element always takes the same number of digits."""
    if isinstance(part, _Number):
        return part.low == part.high
    return isinstance(part, _TwoDigits | _Fraction)


def element(pattern: str, letter: str, count: int) -> Element:
    """Return the element of a run of letters.

    Raises: BadPattern for a letter or a count that DateTimeFormatter does not have.
    """
    maker = LETTERS.get(letter)
    if maker is None:
        raise BadPattern(pattern, f"Unknown pattern letter: {letter}")
    field = maker(letter, count)
    if field is None:
        raise BadPattern(pattern, f"Too many pattern letters: {letter}")
    return field
