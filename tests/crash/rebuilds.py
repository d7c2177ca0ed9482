"""``python -m tests.crash.rebuilds``: faults at every write of a rebuild, judged by rows.

A query is rebuilt, rolled back, or its rebuild is aborted. It is stopped before each effect of the
statement (files, Kafka, database, Spark), of the offset sync, and of the command. It is
stopped in the difference (each partition), at its mark and in the clean-up. It is stopped at
each step of the candidate's batches, and of the new plan's first batch. There the server is killed,
or Spark's JVM, or the broker. Then everything continues, and the rows of the result are compared
with a model (``rebuild_model``).

The points come from watching each action once. Each is a line of a file, so that an interrupted run
can be continued::

    python -m tests.crash.rebuilds --results FILE --resume
    python -m tests.crash.rebuilds --results FILE --only "rollback: launch" --fault kill
    python -m tests.crash.rebuilds --results FILE --table
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.crash.rebuild_model import CELLS, KINDS
from tests.crash.rebuild_world import ACTIONS, Effects, HaltedRebuild, Point, Service, points
from tests.crash.results import Results, Row, carry_out, is_chosen, options
from tests.crash.stage import Stage
from tests.crash.switch_model import GUARANTEES, Cell

FAULTS = ("kill", "jvm", "broker")
_CORES = 16
"""Tasks that are held take one each."""
_SEED = 1


class Matrix:
    """Strikes until no chosen point is left, or so many were run."""

    def __init__(self, chosen: argparse.Namespace, folder: Path, results: Results) -> None:
        self._chosen = chosen
        self._results = results
        self._effects: Effects = {}
        self._stage = Stage(folder, lambda site: Service(site, self._effects), _CORES)

    def run(self) -> None:
        """Run all points; the faults take turns."""
        done = self._results.known if self._chosen.resume else set()
        chance = random.Random(_SEED)  # an order, no secret
        left: dict[tuple[str, Cell], list[Point]] = {}
        run = 0
        try:
            self._stage.ready()
            for fault in FAULTS:
                for cell in CELLS:
                    left[fault, cell] = [
                        point
                        for action in ACTIONS
                        for point in points(self._effects, cell, action)
                        if is_chosen(self._chosen, (*cell, point.name, fault), done)
                    ]
                    chance.shuffle(left[fault, cell])
            sys.stdout.write(f"{sum(map(len, left.values()))} points are left\n")
            while any(left.values()) and (not self._chosen.most or run < self._chosen.most):
                for fault in FAULTS:
                    rows = list(self._inject(fault, _some(fault, left, chance)))
                    run += len(rows)
        finally:
            self._stage.end()

    def _inject(self, fault: str, chosen: dict[Cell, Point]) -> Iterable[Row]:
        if not chosen:
            return
        endings, seconds = self._stage.inject(lambda it: _halted(it.inject(fault, chosen)), chosen)
        for cell, (plan, wrong, answer) in endings.items():
            name = chosen[cell].name
            row = Row(*cell, name, fault, plan, seconds, len(chosen), wrong, answer)
            self._results.add(row)
            yield row


def _halted(halted: dict[Cell, HaltedRebuild]) -> dict[Cell, HaltedRebuild]:
    """Leave out whom the fault met elsewhere, if nothing was wrong: that is no point."""
    met = {}
    for cell, each in halted.items():
        if each.missed and not each.wrong:
            sys.stdout.write(f"not met: {', '.join(cell)}, {each.point.name}: {each.missed}\n")
        else:
            met[cell] = each
    return met


def _some(
    fault: str, left: dict[tuple[str, Cell], list[Point]], chance: random.Random
) -> dict[Cell, Point]:
    """A point of each query, not more than one of them with the engine's lock; taken out."""
    chosen: dict[Cell, Point] = {}
    has_lock = False
    for cell in chance.sample(CELLS, len(CELLS)):
        fits = [point for point in left[fault, cell] if not (point.locks and has_lock)]
        first = next((point for point in fits if point.locks), None) or next(iter(fits), None)
        if first is not None:
            left[fault, cell].remove(first)
            chosen[cell] = first
            has_lock = has_lock or first.locks
    return chosen


def table(rows: Sequence[Row]) -> str:
    """Points by faults, then by kinds and guarantees."""
    lines = [f"| point | {' | '.join(FAULTS)} |", "|---" * (len(FAULTS) + 1) + "|"]
    for name in sorted({row.point for row in rows}):
        cells = [_sum(row for row in rows if (row.point, row.fault) == (name, f)) for f in FAULTS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", f"| query | {' | '.join(FAULTS)} |", "|---" * (len(FAULTS) + 1) + "|"]
    for cell in CELLS:
        of_cell = [row for row in rows if row.key[:2] == cell]
        cells = [_sum(row for row in of_cell if row.fault == fault) for fault in FAULTS]
        lines.append(f"| {cell.guarantee}, {cell.kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _sum(rows: Iterable[Row]) -> str:
    counts = Counter("WRONG" if row.wrong else row.plan for row in rows)
    return ", ".join(f"{count} {ending}" for ending, count in sorted(counts.items())) or "not run"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a row is of no plan, lost, doubled or behind those of a later plan."""
    parser = options("tests.crash.rebuilds", __doc__ or "", GUARANTEES, KINDS, FAULTS)
    parser.add_argument("--most", type=int, default=0, help="about so many points, not all")
    return carry_out(parser.parse_args(arguments), _run, table)


def _run(chosen: argparse.Namespace, folder: Path, results: Results) -> None:
    Matrix(chosen, folder, results).run()


if __name__ == "__main__":
    sys.exit(main())
