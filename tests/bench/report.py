"""Results, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Spread:
    """Several rounds of one number."""

    min: float
    median: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of these."""
        return cls(round(min(values)), round(median(values)), round(max(values)))


@dataclass(frozen=True)
class Result:
    """One workload's numbers; what it does not measure is None.

    ``cores`` (CPUs in use) and ``seconds`` are those of the workloads ``idle-20`` and ``start``.
    """

    name: str
    records_per_s: Spread | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    rss_mb: int | None = None
    cores: float | None = None
    seconds: float | None = None
    note: str = ""

    def line(self) -> str:
        """One line of the table."""
        cells = [f"{self.name:<24}"]
        if self.records_per_s is not None:
            r = self.records_per_s
            cells.append(f"{r.min:>9,} {r.median:>9,} {r.max:>9,} records/s")
        if self.p50_ms is not None:
            cells.append(f"p50 {self.p50_ms:.0f} ms, p99 {self.p99_ms:.0f} ms")
        if self.cores is not None:
            cells.append(f"{self.cores:.2f} cores")
        if self.seconds is not None:
            cells.append(f"{self.seconds:.1f} s")
        if self.rss_mb is not None:
            cells.append(f"{self.rss_mb} MiB")
        return "  ".join([*cells, self.note])

    def entry(self) -> dict[str, object]:
        """The workload's entry in the report; the extra numbers only where they are measured."""
        fields = asdict(self)
        del fields["note"]
        for extra in ("cores", "seconds"):
            if fields[extra] is None:
                del fields[extra]
        return fields


def write(results: Iterable[Result], path: Path) -> None:
    """The report file."""
    entries = [result.entry() for result in results]
    path.write_text(json.dumps({"workloads": entries}, indent=1) + "\n", encoding="utf-8")
