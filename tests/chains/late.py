"""Chains whose tables change while records of streams, or of the tables themselves, come late.

A record behind another one of its partition is taken right after that one, in the first query. Its
results have its own time, so that a second query may take them earlier. So
only the first query joins a stream with what changes; all others give the same in any order.
"""

from __future__ import annotations

from tests.chains.changing import OTHER, Changing
from tests.chains.making import TABLE

BEHIND_MS = (5_000, 60_000, 240_000, 900_000)


class Late(Changing):
    """A chain on its way; streams are late, or tables, or both."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.second = False  # what counts it would have the order of its records
        self.late_streams = self.chance.random() < 0.7
        self.late_tables = not self.late_streams or self.chance.random() < 0.5
        self.behind_ms = self.chance.choice(BEHIND_MS)

    def before(self) -> None:
        """Tables of tables, if these are in order: a join meets each row by its time."""
        if not self.late_tables:
            super().before()
        elif self.chance.random() < 0.5:
            self.table = OTHER

    def between(self) -> None:
        """The first query joins; others move its results, or meet another stream."""
        chance = self.chance
        shapes = [self.joined]
        others = (self.plain, self.moved, self.exploded)
        shapes += [chance.choice(others) for _ in range(chance.choice((0, 1, 1, 2)))]
        if chance.random() < 0.3:
            shapes.append(self.with_stream)
        for number, shape in enumerate(shapes):
            shape(last=number == len(shapes) - 1)

    def after(self) -> None:
        """An aggregate, and what late tables come to in the end: that of their last rows."""
        super().after()
        if self.late_tables:
            self.table = TABLE
            for _ in range(self.chance.choice((1, 2))):
                self.chance.choice((self.twin, self.foreign, self.summed))()

    def _late_ms(self, topic: str) -> int:
        """Whole seconds, so that no two topics have records of one time."""
        is_late = self.late_tables if topic in (TABLE, OTHER) else self.late_streams
        return super()._late_ms(topic) // 1000 * 1000 if is_late else 0
