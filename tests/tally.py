"""The counts of random runs, and how often each shape was among them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """How many cases were run, in how many micro-batches, with how many results."""

    runs: int = 0
    batches: int = 0
    results: int = 0
    shapes: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.runs + other.runs,
            self.batches + other.batches,
            self.results + other.results,
            self.shapes + other.shapes,
        )

    def __str__(self) -> str:
        shapes = ", ".join(f"{count} {name}" for name, count in sorted(self.shapes.items()))
        return f"{self.runs} runs in {self.batches} micro-batches, {self.results} results: {shapes}"
