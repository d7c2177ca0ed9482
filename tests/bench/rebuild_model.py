"""The records of the workload ``rebuild``, and what its queries must come to, in plain arithmetic.

Record ``n`` has the two groups A and B. A runs through all keys in an order that looks like chance,
B is less by a tenth of the keys. So a tenth of the former groups vanishes and a tenth is new. The
others differ where their records do: V is 1 in every second group, and the same rows are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PARTITIONS = 4
_STEP = 7_919  # a prime that divides no number of keys used here
_VALUES = 10

Numbers = NDArray[np.int64]


class Wrong(NamedTuple):
    """Records that a table lacks or has counted twice, and rows whose sums are wrong besides."""

    lost: int
    doubled: int
    sums: int


class Counts(NamedTuple):
    """The rows of a difference, as the history of upgrades counts them."""

    changed: int
    added: int
    removed: int
    equal: int


NOTHING = Wrong(0, 0, 0)
NO_ROWS = Counts(0, 0, 0, 0)


@dataclass(frozen=True)
class Rows:
    """A table by its groups from -``shift`` on: the number of records and the sum of V."""

    counts: Numbers
    sums: Numbers


@dataclass(frozen=True)
class Records:
    """The records of so many keys."""

    keys: int

    @property
    def shift(self) -> int:
        """How far B is behind A; even, so that both have the same values."""
        return self.keys // 20 * 2

    @property
    def always(self) -> int:
        """So many groups from 0 on have rows in both tables."""
        return self.keys - self.shift

    def value(self, number: int) -> bytes:
        """Return a record's value."""
        a = number * _STEP % self.keys
        v = 1 if a % 2 == 0 else number % _VALUES
        return b'{"A":%d,"B":%d,"V":%d}' % (a, a - self.shift, v)

    def rows(self, ends: Mapping[int, int], column: str) -> Rows:
        """Return the table over the records before these offsets of the partitions."""
        parts = [
            np.arange(end, dtype=np.int64) * PARTITIONS + partition
            for partition, end in ends.items()
        ]
        numbers = np.concatenate(parts)
        a = numbers * _STEP % self.keys
        v = np.where(a % 2 == 0, 1, numbers % _VALUES)
        place = a + self.shift if column == "A" else a
        size = self.keys + self.shift
        sums = np.bincount(place, weights=v, minlength=size).astype(np.int64)
        return Rows(np.bincount(place, minlength=size), sums)

    def ends(self, records: int) -> dict[int, int]:
        """Return the offsets after so many records."""
        return {at: (records - at + PARTITIONS - 1) // PARTITIONS for at in range(PARTITIONS)}

    def difference(self, ends: Mapping[int, int]) -> Counts:
        """Return what a cut-over at these offsets has to write."""
        old, new = (self.rows(ends, column) for column in "AB")
        was, is_ = old.counts > 0, new.counts > 0
        same = (old.counts == new.counts) & (old.sums == new.sums)
        return Counts(
            changed=int(np.sum(was & is_ & ~same)),
            added=int(np.sum(is_ & ~was)),
            removed=int(np.sum(was & ~is_)),
            equal=int(np.sum(was & is_ & same)),
        )

    def compare(self, ends: Mapping[int, int], rows: Mapping[int, tuple[int, int]]) -> Wrong:
        """Compare the new table's rows by group with those over the records before the offsets."""
        expected = self.rows(ends, "B")
        counts, sums = np.zeros_like(expected.counts), np.zeros_like(expected.sums)
        for group, (count, total) in rows.items():
            counts[group + self.shift], sums[group + self.shift] = count, total
        missing = expected.counts - counts
        return Wrong(
            lost=int(np.sum(missing[missing > 0])),
            doubled=int(-np.sum(missing[missing < 0])),
            sums=int(np.sum((missing == 0) & (expected.sums != sums))),
        )
