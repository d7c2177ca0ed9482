"""`python -m tests.chains [--runs N] [--seed N] [--jobs N]`: random chains in memory."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.chains.judge import Wrong, check
from tests.tally import Tally

RUNS = 1000
PORTION = 10
"""How many chains a process takes at a time."""


def main() -> int:
    """Run so many chains; those that are wrong are printed, and at the end their seeds."""
    options = argparse.ArgumentParser(prog="python -m tests.chains")
    options.add_argument("--runs", type=int, default=RUNS)
    options.add_argument("--seed", type=int, default=1, help="of the first chain")
    options.add_argument("--jobs", type=int, default=1, help="processes")
    given = options.parse_args()
    seeds = range(given.seed, given.seed + given.runs)
    tally, failing = Tally(), []
    with ProcessPoolExecutor(given.jobs) as pool:
        for seed, (one, wrong) in zip(
            seeds, pool.map(judged, seeds, chunksize=PORTION), strict=True
        ):
            tally += one
            if wrong:
                failing.append(seed)
                sys.stdout.write(f"{wrong}\n\n")
    sys.stdout.write(f"seeds {seeds[0]} to {seeds[-1]}: {tally}; {len(failing)} wrong: {failing}\n")
    return 1 if failing else 0


def judged(seed: int) -> tuple[Tally, str]:
    """Run the chain of a seed; return its tally and what is wrong, if anything is."""
    tally = Tally()
    try:
        check(seed, tally)
    except Wrong as error:
        return tally, str(error)
    return tally, ""


if __name__ == "__main__":
    sys.exit(main())
