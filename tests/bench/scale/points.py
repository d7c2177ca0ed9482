"""The measured points of a curve, as a table and as entries of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.bench.site import Usage

PARTS = ("workers", "jvm", "service", "broker")
_TITLES = {"workers": "Python workers", "jvm": "Spark's JVMs", "service": "service"}


@dataclass(frozen=True)
class Point:
    """The cost of ``records`` at one place of a curve; CPU in seconds, memory at its end in MiB.

    ``series`` is one of several lines of the curve; ``more`` has further numbers by their names.
    """

    at: int
    records: int
    seconds: float
    used: Usage
    rss_mb: int
    series: str = ""
    more: Mapping[str, float] = field(default_factory=dict)

    def part_us(self, part: str) -> float:
        """CPU of a record in one kind of process, in microseconds."""
        spent = self.used.own if part == "service" else getattr(self.used, part)
        return float(spent) / self.records * 1e6

    @property
    def cost_us(self) -> float:
        """CPU of a record in all processes, in microseconds."""
        return sum(map(self.part_us, PARTS))

    @property
    def rate(self) -> float:
        """Records per second of wall time."""
        return self.records / self.seconds

    def entry(self) -> dict[str, object]:
        """The point in the report."""
        return {
            "at": self.at,
            "series": self.series,
            "records": self.records,
            "records_per_s": round(self.rate),
            "cpu_us": {part: round(self.part_us(part), 2) for part in PARTS},
            "cpu_us_sum": round(self.cost_us, 2),
            "rss_mb": self.rss_mb,
            **{name: round(value, 3) for name, value in self.more.items()},
        }


def table(name: str, points: Sequence[Point]) -> str:
    """The points as a table of Markdown."""
    several = any(point.series for point in points)
    further = list(dict.fromkeys(title for point in points for title in point.more))
    parts = [_TITLES.get(part, part) for part in PARTS]
    head = [name, *([""] if several else []), "CPU us/record", *parts, "records/s", "MiB", *further]
    lines = [head, ["---"] * len(head)]
    for point in points:
        cells = [f"{point.at:,}", *([point.series] if several else []), f"{point.cost_us:.1f}"]
        cells += [f"{point.part_us(part):.1f}" for part in PARTS]
        cells += [f"{point.rate:,.0f}", f"{point.rss_mb:,}"]
        cells += [f"{point.more[title]:.3g}" if title in point.more else "" for title in further]
        lines.append(cells)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
