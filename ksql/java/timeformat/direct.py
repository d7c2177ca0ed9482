"""A short cut for the patterns that most texts follow: plain digits of fixed width."""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING

from ksql.java.timeformat.elements import digits_of, fixed_text
from ksql.java.timeformat.fields import epoch_day

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
