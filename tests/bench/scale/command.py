"""`python -m tests.bench scale`: the curves, one after the other."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path

from tests.bench.alone import say
from tests.bench.scale.curves import CURVES, Curve
from tests.bench.scale.picture import drawn
from tests.bench.scale.points import PARTS, Point, table

RECORDS = 1_000_000
_UP = "CPU of a record, us"


def main(argv: Sequence[str]) -> int:
    """Measure all curves, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench scale", description=__doc__)
    parser.add_argument("curves", nargs="*", metavar="CURVE", help=", ".join(CURVES))
    parser.add_argument("--records", type=int, default=RECORDS, help="measured records of a point")
    parser.add_argument("--most", type=int, default=0, help="end each curve there; 0: no bound")
    parser.add_argument("--report", type=Path, metavar="FILE.json")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="an SVG for each curve")
    given = parser.parse_args(argv)
    if unknown := set(given.curves) - set(CURVES):
        parser.error(f"unknown curves: {', '.join(sorted(unknown))}")
    if given.records < 1 or given.most < 0:
        parser.error("--records and --most are numbers of things")
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    measured: dict[str, list[Point]] = {}
    for name in given.curves or CURVES:
        curve = CURVES[name]
        measured[name] = points = []
        for point in curve.points(given.records, given.most):
            points.append(point)
            say(json.dumps(point.entry()))
            _write(measured, given.report)
        say(f"\n{table(curve.of, points)}\n")
        if given.pictures:
            given.pictures.mkdir(parents=True, exist_ok=True)
            file = given.pictures / f"scale-{name}.svg"
            file.write_text(picture(curve, points), encoding="utf-8")
    return 0


def picture(curve: Curve, points: Sequence[Point]) -> str:
    """Draw a curve: its series, or the sum and its parts if there is one series only."""
    lines: dict[str, list[tuple[float, float]]] = {}
    several = any(point.series for point in points)
    for point in points:
        lines.setdefault(point.series or "sum", []).append((point.at, point.cost_us))
        for part in () if several else PARTS:
            lines.setdefault(part, []).append((point.at, point.part_us(part)))
    return drawn(f"CPU of a record by {curve.of}", curve.of, _UP, lines, log_up=curve.logarithmic)


def _write(measured: dict[str, list[Point]], report: Path | None) -> None:
    """Write what there is so far: a long run may be ended."""
    if report is not None:
        curves = {name: [point.entry() for point in points] for name, points in measured.items()}
        report.write_text(json.dumps({"curves": curves}, indent=1) + "\n", encoding="utf-8")
