"""Cases made at random: a shape, its times, and records out of order."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from typing import Any

from tests.streams.shapes import SHAPES, Given, unit_ms

Sent = tuple[Any, ...]
"""A record: topic, key, row (None is a deletion) and time; of several partitions its own, too."""
KEYS = ("a", "b", "ab", "c")
_FAR_MS = 3 * 86_400_000


@dataclass(frozen=True)
class Case:
    """A query and its input."""

    given: Given
    records: tuple[Sent, ...]

    @property
    def text(self) -> str:
        """As the oracle reads it: one line of JSON."""
        records = self.records
        if "partitions" in self.given:  # there keys are written as they are, a byte a letter
            records = tuple(
                (topic, self._written(topic, key), *more) for topic, key, *more in records
            )
        return json.dumps({**self.given, "records": records})

    def _written(self, topic: str, key: str | None) -> str | None:
        return None if key is None else key_bytes(self.given, topic, key).decode("latin-1")

    @property
    def in_sequence(self) -> Case:
        """The same records as one task takes them that finds all of them: by the heads' times."""
        highest: dict[str, int] = {}
        sequence_keys = []
        for record in self.records:
            topic, time = record[0], record[3]
            highest[topic] = max(time, highest.get(topic, time))
            sequence_keys.append((highest[topic], topic))
        places = sorted(range(len(sequence_keys)), key=sequence_keys.__getitem__)
        return self.with_records(tuple(self.records[place] for place in places))

    def with_records(self, records: tuple[Sent, ...]) -> Case:
        """The same query over other records."""
        return replace(self, records=records)


def key_bytes(given: Given, topic: str, key: str) -> bytes:
    """A key as its topic has it."""
    is_json = given.get("formats", {}).get(topic) == "JSON"
    return (json.dumps(key) if is_json else key).encode()


def generated(shape: str, seed: int) -> Case:
    """The case of that shape and number."""
    chance = random.Random(f"{shape} {seed}")
    given = {"shape": shape, **SHAPES[shape].draw(chance)}
    return Case(given, tuple(_records(chance, given)))


def _records(chance: random.Random, given: Given):
    shape, unit = SHAPES[given["shape"]], unit_ms(given)
    hot = chance.choice(KEYS)
    time = chance.choice((0, unit, 1_700_000_000_000))
    latest = time
    for _ in range(chance.randint(2, 30)):
        topic = chance.choice(shape.streams + shape.tables)
        time = moment(chance, latest, time, unit)
        latest = max(latest, time)
        yield topic, _key(chance, hot), _row(chance, topic, topic in shape.tables), time


def moment(chance: random.Random, latest: int, before: int, unit: int) -> int:
    """The time of a record after those before: later, equal, late or far off."""
    dice = chance.random()
    if dice < 0.15:
        return before
    if dice < 0.40:
        return max(0, latest - chance.randint(0, 3 * unit))
    if dice < 0.45:
        return max(0, latest - chance.choice((1, unit, unit + 1, 2 * unit, 10 * unit, _FAR_MS)))
    if dice < 0.55:
        return latest + chance.choice((1, unit - 1, unit, unit + 1, 2 * unit))
    if dice < 0.58:
        return latest + chance.choice((20 * unit, 90_000, _FAR_MS))
    return latest + chance.randint(0, unit)


def _key(chance: random.Random, hot: str) -> str | None:
    dice = chance.random()
    if dice < 0.04:
        return None
    return hot if dice < 0.5 else chance.choice(KEYS)


def _row(chance: random.Random, topic: str, is_table: bool) -> dict[str, Any] | None:
    if chance.random() < (0.25 if is_table else 0.05):
        return None
    number = value(chance)
    if topic == "l":
        reference = None if chance.random() < 0.08 else chance.choice(KEYS[:3])
        return {"V": number, "F": reference}
    return {"W" if topic == "r" else "X": number}


def value(chance: random.Random) -> int | None:
    """A number, or none."""
    return None if chance.random() < 0.08 else chance.randint(0, 9)
