"""`python -m tests.chains [--runs N] [--seed N]`: random chains in memory, and what they found."""

from __future__ import annotations

import argparse
import sys

from tests.chains.judge import Wrong, check
from tests.tally import Tally

RUNS = 1000


def main() -> int:
    """Run so many chains; those that are wrong are printed, and at the end their seeds."""
    options = argparse.ArgumentParser(prog="python -m tests.chains")
    options.add_argument("--runs", type=int, default=RUNS)
    options.add_argument("--seed", type=int, default=1, help="of the first chain")
    given = options.parse_args()
    tally, failing = Tally(), []
    for seed in range(given.seed, given.seed + given.runs):
        try:
            check(seed, tally)
        except Wrong as error:
            failing.append(seed)
            sys.stdout.write(f"{error}\n\n")
    last = given.seed + given.runs - 1
    sys.stdout.write(f"seeds {given.seed} to {last}: {tally}; {len(failing)} wrong: {failing}\n")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
