"""``python -m tests.crash.switches``: faults at every write of a replacement, judged by rows.

The statement is stopped before each of its effects (files, Kafka, database, registry, Spark), the
old plan's last batch and the new plan's first one at each of their own. There the server is killed,
a batch fails, Spark's JVM or the broker goes away, the query is paused or ended, its source is
altered. Then everything continues, and the rows of the result are compared with a model
(``switch_model``).

Each point is a line of a file, so that an interrupted run can be continued::

    python -m tests.crash.switches --results FILE --resume
    python -m tests.crash.switches --results FILE --only "first batch begun, kill"
    python -m tests.crash.switches --results FILE --table
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.crash.points import ANSWER, BETWEEN
from tests.crash.results import Results, Row, carry_out, is_chosen, options
from tests.crash.stage import Stage
from tests.crash.switch_model import CELLS, GUARANTEES, KINDS, Cell
from tests.crash.switch_world import END, Part, Point, Service

QUERY_FAULTS = ("pause", "terminate", "alter", "fail")
SERVER_FAULTS = ("broker", "jvm", "kill")
"""Those that inject all queries at once; much has to be started again after them."""
FAULTS = (*QUERY_FAULTS, *SERVER_FAULTS)
TOGETHER = ("trial", END, BETWEEN, ANSWER)
"""Effects at which several statements can stand; at others one of them has the engine's lock."""
ALONE = ("begin_transaction", "commit_transaction", "os.mkdir", "os.replace")
NO_BATCH = {
    BETWEEN: "no plan of the query runs, so no batch can fail",
    "begin_transaction": "no plan of the query runs, so no batch can fail",
    "commit_transaction": "no plan of the query runs, so no batch can fail",
    "os.mkdir": "the batch that can fail is the first one of the new plan: see there",
    "os.replace": "the batch that can fail is the first one of the new plan: see there",
}
"""Why ``fail`` cannot arise before these effects."""
_CORES = 8


def points() -> list[tuple[Point, tuple[Cell, ...]]]:
    """All points that can arise, each with the queries that can be at it at once.

    The cheap and the telling ones come first, so that half a run has seen most.
    """
    return sorted(_points(), key=lambda run: _rank(run[0]))


def _points() -> Iterator[tuple[Point, tuple[Cell, ...]]]:
    for fault in FAULTS:
        for effect in TOGETHER:
            if fault != "fail" or effect not in NO_BATCH:
                yield Point(Part.STATEMENT, effect, fault), CELLS
        for part in (Part.FIRST, Part.LAST):
            for step in range(4):
                yield Point(part, step, fault), CELLS
        for effect in ALONE:
            if effect not in NO_BATCH or fault != "fail":
                for cell in CELLS:
                    yield Point(Part.STATEMENT, effect, fault), (cell,)


def _rank(point: Point) -> int:
    strikes_all = point.fault in SERVER_FAULTS
    if point.step in ALONE:
        return 6 if strikes_all else 1 if point.step == "commit_transaction" else 4
    if point.part is Part.LAST:
        return 5 if strikes_all else 3
    if not strikes_all:
        return 0
    return 2 if point.step in (END, BETWEEN, 1, 3) else 5


class Matrix:
    """Runs points over one service; a fault gets the next point a new one on the same broker."""

    def __init__(self, folder: Path) -> None:
        self._stage = Stage(folder, Service, _CORES)

    def run(self, point: Point, cells: Sequence[Cell]) -> list[Row]:
        """The lines of a point."""
        endings, seconds = self._stage.inject(lambda it: it.inject(point, cells), cells)
        return [
            Row(*cell, point.name(cell), point.fault, plan, seconds, len(cells), wrong, answer)
            for cell, (plan, wrong, answer) in endings.items()
        ]

    def end(self) -> None:
        """End the processes."""
        self._stage.end()


def table(rows: Sequence[Row]) -> str:
    """Points by faults: how many queries were at it, and which plan they have afterwards."""
    names = {point.name(cell) for point, cells in points() for cell in cells}
    lines = [f"| point | {' | '.join(FAULTS)} |", "|---" * (len(FAULTS) + 1) + "|"]
    for name in sorted(names, key=_place):
        cells = [
            _cell([row for row in rows if (row.point, row.fault) == (name, fault)], name, fault)
            for fault in FAULTS
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append("")
    for cell in CELLS:
        of_cell = [row for row in rows if row.key[:2] == cell]
        wrong = sum(bool(row.wrong) for row in of_cell)
        lines.append(f"{cell.guarantee}, {cell.kind}: {len(of_cell)} points, {wrong} wrong")
    lines += [f"- before {name}, fail cannot arise: {why}" for name, why in NO_BATCH.items()]
    return "\n".join(lines)


def _place(name: str) -> tuple[int, str]:
    """Where a point stands in the table."""
    effects = ("trial", END, BETWEEN, *ALONE, ANSWER)
    orders = [f"before {effect}" for effect in effects]
    return (orders.index(name) if name in orders else len(orders), name)


def _cell(rows: Sequence[Row], name: str, fault: str) -> str:
    if not rows:
        barred = fault == "fail" and name.removeprefix("before ") in NO_BATCH
        return "cannot arise" if barred else "not run"
    plans = Counter(row.plan for row in rows if not row.wrong)
    wrong = sum(bool(row.wrong) for row in rows)
    endings = [f"{count} {plan}" for plan, count in sorted(plans.items())]
    return ", ".join([*endings, *([f"{wrong} WRONG"] if wrong else [])])


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a row was lost, doubled, or of a plan that the log does not know."""
    parser = options("tests.crash.switches", __doc__ or "", GUARANTEES, KINDS, FAULTS)
    return carry_out(parser.parse_args(arguments), _run, table)


def _run(chosen: argparse.Namespace, folder: Path, results: Results) -> None:
    done = results.known if chosen.resume else set()
    matrix = Matrix(folder)
    try:
        for point, possible in points():
            cells = [cell for cell in possible if _is_chosen(chosen, point, cell, done)]
            for row in matrix.run(point, cells) if cells else ():
                results.add(row)
    finally:
        matrix.end()


def _is_chosen(
    chosen: argparse.Namespace, point: Point, cell: Cell, done: set[tuple[str, str, str, str]]
) -> bool:
    return is_chosen(chosen, (*cell, point.name(cell), point.fault), done)


if __name__ == "__main__":
    sys.exit(main())
