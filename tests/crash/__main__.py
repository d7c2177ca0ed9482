"""``python -m tests.crash``: kills at every point, and a table of what came out of it."""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.crash.matrix import Matrix, Row
from tests.crash.site import Broker, Site
from tests.crash.world import EXACTLY_ONCE
from tests.kafka.records import unique

GUARANTEES = ("at_least_once", EXACTLY_ONCE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if anything was lost, doubled, left behind or not running."""
    parser = argparse.ArgumentParser(prog="tests.crash", description=__doc__)
    parser.add_argument("--guarantee", choices=GUARANTEES, help="only this one")
    parser.add_argument("--only", default="", help="only lines that hold this text")
    chosen = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores the first
        signal.signal(number, _interrupt)
    if chosen.guarantee is None:
        return _side_by_side(chosen.only)
    return _run(chosen.guarantee, chosen.only)


def _interrupt(_number: int, _frame: object) -> None:
    """End by an exception, so that brokers and servers are ended too."""
    raise KeyboardInterrupt


def _side_by_side(only: str) -> int:
    command = [sys.executable, "-m", "tests.crash", "--only", only, "--guarantee"]
    with contextlib.ExitStack() as ending:
        running = [
            ending.enter_context(subprocess.Popen([*command, guarantee]))
            for guarantee in GUARANTEES
        ]
        for process in running:
            ending.callback(process.send_signal, signal.SIGINT)
        return max(process.wait() for process in running)


def _run(guarantee: str, only: str) -> int:
    with tempfile.TemporaryDirectory(prefix="ksql-crash-") as folder:
        sites: list[Site] = []

        def make_site() -> Site:
            place = Path(folder) / str(len(sites))
            place.mkdir()
            sites.append(Site(Broker(place / "kafka"), place, unique("crash") + "_"))
            return sites[-1]

        matrix = Matrix(guarantee, make_site)
        try:
            for row in matrix.run(only):
                _say(row)
        finally:
            matrix.end()
        return _sum_up(guarantee, matrix.rows, sites)


def _say(row: Row) -> None:
    outcome = f"FAULT {row.fault}" if row.fault else "ok"
    line = f"| {row.guarantee} | {row.what} | {row.point} | {row.seconds:.0f} s | {outcome} |"
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _sum_up(guarantee: str, rows: Sequence[Row], sites: Sequence[Site]) -> int:
    faults = sum(bool(row.fault) for row in rows)
    orphans = [seconds for site in sites for seconds in site.orphan_seconds]
    starts = [seconds for site in sites for seconds in site.start_seconds]
    sys.stdout.write(
        f"{guarantee}: {len(rows)} points, {faults} faults; "
        f"the longest start took {max(starts, default=0):.1f} s; "
        f"no process was left {max(orphans, default=0):.1f} s after a kill\n"
    )
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
