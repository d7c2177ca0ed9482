r"""Texts that match a pattern: the part of regular expressions that schemas of test data use.

Letters, sets, groups, alternatives and repetitions have their usual meaning; ``.``, ``\d`` and
``\w`` stand for letters and digits of ASCII. A repetition without an end is of eight at most.
Source: the Avro random generator's ``regex``; its texts come from the same language.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from random import Random

from ksql.core import KsqlError

Maker = Callable[[Random], str]
_MOST = 8
_WORD = string.ascii_letters + string.digits
_SETS = {"d": string.digits, "w": _WORD + "_", "s": " "}
_REPEATS = {"?": (0, 1), "*": (0, _MOST), "+": (1, _MOST)}


class BadSchema(KsqlError):
    """A schema that no records can be made of."""


def maker_of(pattern: str) -> Maker:
    """Return what makes a text that matches the whole pattern.

    Raises: BadSchema for a pattern that cannot be read, or has what is not supported.
    """
    reader = _Reader(pattern)
    maker = reader.alternatives()
    if not reader.at_end:
        raise reader.error(f"there is an unexpected {reader.next!r}")
    return maker


class _Reader:
    """Reads one pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    @property
    def at_end(self) -> bool:
        """Whether all has been read."""
        return self._at >= len(self._pattern)

    @property
    def next(self) -> str:
        """The next character; empty at the end."""
        return self._pattern[self._at : self._at + 1]

    def error(self, why: str) -> BadSchema:
        """Return the refusal of the pattern."""
        return BadSchema(f"No texts can be made of the pattern {self._pattern!r}: {why}.")

    def alternatives(self) -> Maker:
        """Read the parts between ``|``."""
        choices = [self._sequence()]
        while self._takes("|"):
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else lambda dice: dice.choice(choices)(dice)

    def _sequence(self) -> Maker:
        parts: list[Maker] = []
        while self.next not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return lambda dice: "".join(part(dice) for part in parts)

    def _repeated(self, part: Maker) -> Maker:
        least, most = self._bounds()
        if (least, most) == (1, 1):
            return part
        return lambda dice: "".join(part(dice) for _ in range(dice.randint(least, most)))

    def _bounds(self) -> tuple[int, int]:
        if self.next in _REPEATS and self.next:
            return _REPEATS[self._take()]
        if not self._takes("{"):
            return 1, 1
        low, comma, high = self._until("}").partition(",")
        if not low.isdecimal() or not (high.isdecimal() or not high):
            raise self.error("a repetition is {n}, {n,} or {n,m}")
        least = int(low)
        most = int(high) if high else max(least, _MOST) if comma else least
        if most < least:
            raise self.error(f"{{{low},{high}}} ends before it begins")
        return least, most

    def _atom(self) -> Maker:
        match self._take():
            case "(":
                return self._group()
            case "[":
                return _one_of(self._set())
            case ".":
                return _one_of(_WORD)
            case "\\":
                return _one_of(self._escaped())
            case ("^" | "$") as sign:
                raise self.error(f"{sign} is not needed: a text matches the whole pattern")
            case ("?" | "*" | "+" | "{") as sign:
                raise self.error(f"there is nothing before {sign}")
            case letter:
                return lambda _dice: letter

    def _group(self) -> Maker:
        if self._takes("?") and not self._takes(":"):
            raise self.error("(?: .. ) and ( .. ) are the only groups")
        inner = self.alternatives()
        if not self._takes(")"):
            raise self.error("a bracket is not closed")
        return inner

    def _set(self) -> str:
        if self._takes("^"):
            raise self.error("sets of what may not be there are not supported")
        letters = ""
        while self.next != "]":
            first = self._escaped() if self._takes("\\") else self._take()
            if self.next == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._take()
                last = self._take()
                if len(first) != 1 or ord(last) < ord(first):
                    raise self.error(f"{first}-{last} is no range")
                first = "".join(map(chr, range(ord(first), ord(last) + 1)))
            letters += first
        self._take()
        if not letters:
            raise self.error("a set is empty")
        return letters

    def _escaped(self) -> str:
        letter = self._take()
        if letter.isalnum() and letter not in _SETS:
            raise self.error(f"\\{letter} is not supported")
        return _SETS.get(letter, letter)

    def _until(self, end: str) -> str:
        begin, self._at = self._at, self._pattern.find(end, self._at) + 1
        if not self._at:
            raise self.error("a repetition is not closed")
        return self._pattern[begin : self._at - 1]

    def _takes(self, sign: str) -> bool:
        if self.next != sign or not sign:
            return False
        self._at += 1
        return True

    def _take(self) -> str:
        if self.at_end:
            raise self.error("it ends too early")
        self._at += 1
        return self._pattern[self._at - 1]


def _one_of(letters: str) -> Maker:
    return lambda dice: dice.choice(letters)
