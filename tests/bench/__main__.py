"""`python -m tests.bench [--records N] [--report FILE.json] [WORKLOAD ..]`, `.. peers ..`,
`.. stores ..`, `.. rebuild ..`, `.. nexmark ..`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench import (
    gap,
    inserts,
    latency,
    pushes,
    rebuild,
    report,
    resources,
    restart,
    stores,
    throughput,
)
from tests.bench.nexmark import race as nexmark
from tests.bench.peers import race
from tests.bench.report import Result
from tests.bench.site import site

RECORDS = 1_000_000
COMMANDS = {
    "nexmark": nexmark.main,
    "peers": race.main,
    "rebuild": rebuild.main,
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
ALONE = {
    workload.name: workload
    for workload in (resources.Start(), pushes.IdlePushes(), restart.Restart())
}
NAMES = (*ON_A_SITE, *ALONE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the workloads named, all without a name; the race if its name comes first."""
    argv = sys.argv[1:] if argv is None else argv
    signal.signal(signal.SIGTERM, _end)  # so that what was started is stopped and removed
    if argv and (command := COMMANDS.get(argv[0])) is not None:
        return command(argv[1:])
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="The numbers.")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(NAMES))
    parser.add_argument("--records", type=int, default=RECORDS, help="input of a throughput round")
    parser.add_argument("--report", type=Path, metavar="FILE.json")
    parser.add_argument(
        "--state-mib", type=int, default=restart.STATE_MIB, help="state of the workload restart"
    )
    given = parser.parse_args(argv)
    if unknown := set(given.workloads) - set(NAMES):
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


def _shown(result: Result) -> Result:
    _say(result.line())
    return result


def _end(_number: int, _frame: object) -> None:
    sys.exit(128 + signal.SIGTERM)


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    sys.exit(main())
