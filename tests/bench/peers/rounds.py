"""The numbers of both sides and their ratios."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import median


@dataclass(frozen=True)
class Run:
    """One round of one side; CPU seconds are those of a million records."""

    records_per_s: float
    cpu_s: float
    broker_cpu_s: float
    peak_mb: int
    steady_per_s: float | None = None

    @property
    def all_cpu_s(self) -> float:
        """With what the broker has spent on it."""
        return self.cpu_s + self.broker_cpu_s


@dataclass
class Rounds:
    """A workload's rounds."""

    name: str
    about: str
    every_change: bool
    peer: str = "Kafka Streams"
    ours: list[Run] = field(default_factory=list)
    theirs: list[Run] = field(default_factory=list)

    def ratio(self, of: Callable[[Run], float], against: Callable[[Run], float]) -> float:
        """Our median over theirs."""
        return round(median(map(of, self.ours)) / median(map(against, self.theirs)), 2)

    def ratios(self) -> dict[str, float]:
        """Of throughput (also against the peer's steady rate), CPU time and memory."""
        rate, cpu = _rate, _cpu
        return {
            "throughput": self.ratio(rate, rate),
            "throughput_of_steady": self.ratio(rate, lambda run: run.steady_per_s or 0.0),
            "cpu": self.ratio(cpu, cpu),
            "memory": round(_peak(self.ours) / _peak(self.theirs), 2),
        }

    def text(self) -> str:
        """The workload, a line for each side that has run, and the ratios of two sides."""
        mode = "every change" if self.every_change else "coalesced"
        lines = [f"{self.name} {self.about}, {mode}", _line("ksql-spark", self.ours)]
        if self.theirs:
            got = self.ratios()
            rate = f"{got['throughput']:.2f} ({got['throughput_of_steady']:.2f} of steady)"
            last = f"  ratio: {rate}, CPU {got['cpu']:.2f}, memory {got['memory']:.2f}"
            lines += [_line(self.peer, self.theirs), last]
        return "\n".join(lines)

    def entry(self) -> dict[str, object]:
        """The same for a program."""
        return asdict(self) | {"ratios": self.ratios() if self.theirs else {}}


def _rate(run: Run) -> float:
    return run.records_per_s


def _cpu(run: Run) -> float:
    return run.all_cpu_s


def _peak(runs: list[Run]) -> int:
    return max(run.peak_mb for run in runs)


def _line(side: str, runs: list[Run]) -> str:
    rates = sorted(run.records_per_s for run in runs)
    own, broker = median(run.cpu_s for run in runs), median(run.broker_cpu_s for run in runs)
    steady = [run.steady_per_s for run in runs if run.steady_per_s is not None]
    behind = f", steady {median(steady):,.0f}" if steady else ""
    return (
        f"  {side:<14}{rates[0]:>9,.0f} {median(rates):>9,.0f} {rates[-1]:>9,.0f} records/s{behind}"
        f"   CPU {own:.1f} + broker {broker:.1f} s/M   {_peak(runs):,} MiB"
    )
