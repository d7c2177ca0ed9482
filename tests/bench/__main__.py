"""`python -m tests.bench [--records N] [--report FILE.json] [WORKLOAD ..]`, `.. peers ..`,
`.. stores ..`, `.. rebuild ..`, `.. nexmark ..`, `.. scale ..`.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tests.bench import (
    gap,
    inserts,
    latency,
    pushes,
    rebuild,
    report,
    resources,
    restart,
    resume,
    stores,
    throughput,
)
from tests.bench.nexmark import race as nexmark
from tests.bench.peers import race
from tests.bench.report import Result
from tests.bench.scale import command as scale
from tests.bench.site import site

RECORDS = 1_000_000


class Alone(Protocol):
    """A workload with a service, or several, of its own."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        ...

    def run(self) -> Result:
        """Measure."""
        ...


COMMANDS = {
    "nexmark": nexmark.main,
    "peers": race.main,
    "rebuild": rebuild.main,
    "scale": scale.main,
    "stores": stores.main,
}
"""What has arguments of its own."""
ON_A_SITE = {
    workload.name: workload
    for workload in (
        *throughput.WORKLOADS,
        *latency.WORKLOADS,
        *inserts.WORKLOADS,
        *gap.WORKLOADS,
        resources.Idle(),
        resources.Memory(),
    )
}
ALONE: dict[str, Alone] = {
    workload.name: workload
    for workload in (resources.Start(), pushes.IdlePushes(), restart.Restart())
}
NAMES = (*ON_A_SITE, *ALONE)
_COUNTED = re.compile(r"(idle|resume)-(\d+)")
"""Workloads that run with so many queries, if they are named."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the workloads named, all without a name; the race if its name comes first."""
    argv = sys.argv[1:] if argv is None else argv
    signal.signal(signal.SIGTERM, _end)  # so that what was started is stopped and removed
    if argv and (command := COMMANDS.get(argv[0])) is not None:
        return command(argv[1:])
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="The numbers.")
    parser.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help=f"{', '.join(NAMES)}, idle-N, resume-N"
    )
    parser.add_argument("--records", type=int, default=RECORDS, help="input of a throughput round")
    parser.add_argument("--report", type=Path, metavar="FILE.json")
    parser.add_argument(
        "--state-mib", type=int, default=restart.STATE_MIB, help="state of the workload restart"
    )
    given = parser.parse_args(argv)
    _add_counted(given.workloads)
    if unknown := set(given.workloads) - {*ON_A_SITE, *ALONE}:
        parser.error(f"unknown workloads: {', '.join(sorted(unknown))}")
    _say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    ALONE["restart"] = restart.Restart(given.state_mib)
    results = run(given.workloads or NAMES, given.records)
    if given.report:
        report.write(results, given.report)
    return 0


def run(names: Sequence[str], records: int) -> list[Result]:
    """The results, printed as they come."""
    results = []
    for name, alone in ALONE.items():
        if name in names:
            results.append(_shown(alone.run()))
    on_site = [name for name in ON_A_SITE if name in names]
    if on_site:
        with site() as running:
            results += [_shown(ON_A_SITE[name].run(running, records)) for name in on_site]
    return results


def _add_counted(names: Sequence[str]) -> None:
    """Add the workloads whose names say how many queries they have."""
    for name in names:
        if (counted := _COUNTED.fullmatch(name)) is None:
            continue
        queries = int(counted[2])
        if counted[1] == "idle":
            ON_A_SITE[name] = resources.Idle(queries)
        else:
            ALONE[name] = resume.Resume(queries)


def _shown(result: Result) -> Result:
    _say(result.line())
    return result


def _end(_number: int, _frame: object) -> None:
    sys.exit(128 + signal.SIGTERM)


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    sys.exit(main())
