"""Small damages to texts and bytes; odd values."""

from __future__ import annotations

import random
from collections.abc import MutableSequence
from typing import Any, TypeVar

T = TypeVar("T")
_MOST = 6
ODD_VALUES: list[Any] = [
    *(None, True, 0, -1, 1.5, 10**30, 1e308),
    *("", "x", "\0", "\U0001f600"),
    *([], [[]], [None], {}, {"a": 1}),
]
"""Values that a JSON body may hold and hardly any field expects."""


def damaged(chance: random.Random, items: MutableSequence[T], others: list[T]) -> None:
    """A few items are dropped, doubled, swapped, replaced or inserted, in place."""
    for _ in range(chance.randrange(1, _MOST)):
        at = chance.randrange(len(items) + 1)
        match chance.randrange(6):
            case 0:
                del items[at : at + chance.randrange(1, 4)]
            case 1:
                items[at:at] = items[at : at + chance.randrange(1, 20)]
            case 2 if len(items) > 1:
                other = chance.randrange(len(items))
                at = min(at, len(items) - 1)
                items[at], items[other] = items[other], items[at]
            case 3 if at < len(items):
                items[at] = chance.choice(others)
            case 4:
                items.insert(at, chance.choice(others))
            case _:
                del items[at:]
