"""Cases over several partitions: times far apart, records in their key's partition or in any."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
from tests.streams.cases import Case, Sent, key_bytes, moment, value
from tests.streams.shapes import ALL, Given, group_type, statements, unit_ms

KEYS = ("a", "b", "ab", "c", "d", "key", "k7", "long-key")
_VALUES: dict[str, tuple[Any, ...]] = {
    "INT": (1, -2, 70_000, 0),
    "BIGINT": (1, -2, 1 << 40, 0),
    "DOUBLE": (1.5, -0.25, 1e10, 0.0001),
    "DECIMAL(4, 2)": (1.5, -0.25, 10, 99.99),
    "STRUCT<A INT, B STRING>": ({"A": 1, "B": "x"}, {"A": -2, "B": None}, {"A": None, "B": "é"}),
}
_HOUR_MS = 3_600_000
_STILL_AFTER = 5
"""How many records there are before a partition may be idle."""


def spread(shape: str, seed: int) -> Case:
    """The case of that shape and number over several partitions."""
    chance = random.Random(f"spread {shape} {seed}")
    drawn = ALL[shape]
    given: Given = {"shape": shape, **drawn.draw(chance)}
    given["partitions"] = chance.choice((2, 3, 3, 4))
    if "formats" not in given:
        one = chance.choice(("KAFKA", "JSON"))
        given["formats"] = dict.fromkeys(drawn.streams + drawn.tables, one)
    return Case(given, tuple(_records(chance, given)))


def _records(chance: random.Random, given: Given) -> Iterator[Sent]:
    shape, unit, count = ALL[given["shape"]], unit_ms(given), given["partitions"]
    keys, loose = chance.sample(KEYS, chance.choice((2, 4, len(KEYS)))), chance.random() < 0.4
    base = chance.choice((0, unit, 1_700_000_000_000))
    apart = (0, 0, 1, unit, 5 * _HOUR_MS, 72 * _HOUR_MS)
    times = [base + chance.choice(apart) for _ in range(count)]
    latest = list(times)
    empty, still = chance.randrange(-2, count), chance.randrange(-2, count)
    for number in range(chance.randint(4, 60)):
        topic = chance.choice(shape.streams + shape.tables)
        key = _key(chance, keys)
        if key is None or (loose and topic in shape.anywhere):
            place = chance.randrange(count)
        else:
            [place] = partitions_of([key_bytes(given, topic, key)], count)
        if place == empty or (place == still and number > _STILL_AFTER):
            continue
        time = times[place] = moment(chance, latest[place], times[place], unit)
        latest[place] = max(latest[place], time)
        yield topic, key, _row(chance, given, topic, keys), time, place


def _key(chance: random.Random, keys: Sequence[str]) -> str | None:
    dice = chance.random()
    if dice < 0.04:
        return None
    return keys[0] if dice < 0.4 else chance.choice(keys)


def _row(
    chance: random.Random, given: Given, topic: str, keys: Sequence[str]
) -> dict[str, Any] | None:
    if chance.random() < (0.25 if topic in ALL[given["shape"]].tables else 0.05):
        return None
    if topic == "l":
        among = _VALUES.get(group_type(given), keys)
        return {"V": value(chance), "F": _reference(chance, among)}
    if topic == "r":
        by_it = "r.G" in statements(given)
        return {"W": value(chance)} | ({"G": _reference(chance, keys)} if by_it else {})
    return {"X": value(chance)}


def _reference(chance: random.Random, among: Sequence[Any]) -> Any:
    return None if chance.random() < 0.08 else chance.choice(among)
