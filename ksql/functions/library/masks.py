"""Masks: characters replaced by their kind's sign, in a whole text or in a part of it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from ksql.functions.build import family
from ksql.functions.spec import Scalar
from ksql.java import EvaluationError, from_units, to_units

DEFAULTS = ("X", "x", "n", "-")
_KINDS = {"Lu": 0, "Ll": 1, "Nd": 2}
_OTHER = 3
_SIGNS = ("STRING upper", "STRING lower", "STRING digit", "STRING other")


class BadMask(EvaluationError):
    """A mask that is not one character."""

    def __init__(self, mask: str) -> None:
        super().__init__(f"a mask must be exactly one character, not {mask!r}")


class NegativeCount(EvaluationError):
    """A number of characters below zero."""

    def __init__(self, count: int) -> None:
        super().__init__(f"the number of characters to mask must not be negative: {count}")


def _masked(text: str, signs: tuple[str | None, ...]) -> str:
    for sign in signs:
        if sign is not None and len(sign) != 1:
            raise BadMask(sign)
    masked = []
    for character in text:
        sign = signs[_KINDS.get(unicodedata.category(character), _OTHER)]
        masked.append(character if sign is None else sign)
    return "".join(masked)


def mask(text: str | None, *signs: str | None) -> str | None:
    """Return every character replaced; a NULL sign leaves its kind as it is."""
    if text is None:
        return None
    return from_units(_masked(to_units(text), signs or DEFAULTS))


def _part(
    bounds: Callable[[int, int], tuple[int, int]],
) -> Callable[..., str | None]:
    """Return a function that masks from one place to another; ``bounds`` gets length and count."""

    def run(text: str | None, count: int, *signs: str | None) -> str | None:
        if count < 0:
            raise NegativeCount(count)
        if text is None:
            return None
        units = to_units(text)
        start, end = bounds(len(units), min(count, len(units)))
        middle = _masked(units[start:end], signs or DEFAULTS)
        return from_units(units[:start] + middle + units[end:])

    return run


def _both(first: tuple[str, ...], row: Callable[..., str | None]) -> tuple[Scalar, Scalar]:
    """Return the overloads with the usual signs and with signs of one's own."""
    return (
        Scalar(first, "STRING", row, nulls="pass"),
        Scalar((*first, *_SIGNS), "STRING", row, nulls="pass"),
    )


_COUNTED = ("STRING input", "int numChars")

MASKS = family(
    "STRING",
    {
        "mask": (
            "The text with letters as X and x, digits as n and all else as -, or signs given.",
            *_both(("STRING input",), mask),
        ),
        "mask_left": (
            "The text with its first characters masked.",
            *_both(_COUNTED, _part(lambda _, count: (0, count))),
        ),
        "mask_right": (
            "The text with its last characters masked.",
            *_both(_COUNTED, _part(lambda size, count: (size - count, size))),
        ),
        "mask_keep_left": (
            "The text with all but its first characters masked.",
            *_both(_COUNTED, _part(lambda size, count: (count, size))),
        ),
        "mask_keep_right": (
            "The text with all but its last characters masked.",
            *_both(_COUNTED, _part(lambda size, count: (0, size - count))),
        ),
    },
)
