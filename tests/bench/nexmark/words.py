"""The texts of Nexmark's events: names, letters at random, channels and their addresses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
FIRST_NAMES = (
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
)
LAST_NAMES = (
    "Shultz",
    "Abrams",
    "Spencer",
    "White",
    "Bartels",
    "Walton",
    "Smith",
    "Jones",
    "Noris",
)
HOT_NAMES = ("Google", "Facebook", "Baidu", "Apple")
HOT_CHANNELS, OTHER_CHANNELS = len(HOT_NAMES), 10_000
SHORTEST = 3
_GAPS = 13
"""One letter of so many is a gap."""

Channels = list[tuple[str, str]]
"""Name and address, the hot ones first."""


def texts(chance: np.random.Generator, size: int, longest: int, gap: str = " ") -> list[str]:
    """Return texts of 3 to fewer than ``longest`` letters; gaps at their ends are cut off."""
    lengths = SHORTEST + chance.integers(0, longest - SHORTEST, size)
    letters = _letters(chance, int(lengths.sum()))
    gaps = chance.integers(0, _GAPS, len(letters)) == 0
    return [each.strip() for each in _cut(np.where(gaps, ord(gap), letters), lengths)]


def padding(chance: np.random.Generator, used: NDArray[np.int64], size_bytes: int) -> list[str]:
    """Return letters that fill events up to about the wanted size; ``used`` is without them."""
    left = size_bytes - used
    spread = np.rint(left * 0.2).astype(np.int64)
    lengths = left - spread + chance.integers(0, np.maximum(2 * spread, 1))
    lengths = np.where(left < 0, 0, lengths)
    return _cut(_letters(chance, int(lengths.sum())), lengths)


def people(chance: np.random.Generator, size: int) -> list[tuple[str, str, str, str, str]]:
    """Return names, addresses, numbers of credit cards, cities and states."""
    first = chance.integers(0, len(FIRST_NAMES), size).tolist()
    last = chance.integers(0, len(LAST_NAMES), size).tolist()
    cards = chance.integers(0, 10_000, (size, 4)).tolist()
    cities = chance.integers(0, len(CITIES), size).tolist()
    states = chance.integers(0, len(STATES), size).tolist()
    users, hosts = texts(chance, size, 7), texts(chance, size, 5)
    return [
        (
            f"{FIRST_NAMES[first[n]]} {LAST_NAMES[last[n]]}",
            f"{users[n]}@{hosts[n]}.com",
            " ".join(f"{part:04d}" for part in cards[n]),
            CITIES[cities[n]],
            STATES[states[n]],
        )
        for n in range(size)
    ]


def channels(chance: np.random.Generator) -> Channels:
    """Return all channels; nine of ten of those that are not hot have an id in their address."""
    count = HOT_CHANNELS + OTHER_CHANNELS
    parts = [texts(chance, count, 5, "_") for _ in range(3)]
    addresses = [
        f"https://www.nexmark.com/{'/'.join(folders)}/item.htm?query=1"
        for folders in zip(*parts, strict=True)
    ]
    known = (chance.integers(0, 10, OTHER_CHANNELS) > 0).tolist()
    others = [
        (f"channel-{n}", f"{address}&channel_id={_reversed(n)}" if known[n] else address)
        for n, address in enumerate(addresses[HOT_CHANNELS:])
    ]
    return [*zip(HOT_NAMES, addresses[:HOT_CHANNELS], strict=True), *others]


def _reversed(number: int) -> int:
    """The number with its 32 bits in the opposite order, without a sign."""
    bits = int(f"{number:032b}"[::-1], 2)
    return abs(bits - 2**32 if bits >= 2**31 else bits)


def _letters(chance: np.random.Generator, count: int) -> NDArray[np.uint8]:
    return chance.integers(ord("a"), ord("z") + 1, count, dtype=np.uint8)


def _cut(letters: NDArray[np.uint8], lengths: NDArray[np.int64]) -> list[str]:
    text = letters.astype(np.uint8).tobytes().decode("ascii")
    ends = np.cumsum(lengths).tolist()
    return [text[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
