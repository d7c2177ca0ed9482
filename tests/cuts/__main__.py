"""`python -m tests.cuts [--runs N] [--seed N]`: random cases in memory, and what they found."""

from __future__ import annotations

import argparse
import sys

from tests.cuts.run import Differs, check
from tests.tally import Tally

RUNS = 1000


def main() -> int:
    """Run cases until there are so many; those that differ are printed."""
    options = argparse.ArgumentParser(prog="python -m tests.cuts")
    options.add_argument("--runs", type=int, default=RUNS)
    options.add_argument("--seed", type=int, default=1, help="of the first case")
    given = options.parse_args()
    tally, seed, failures = Tally(), given.seed, 0
    while tally.runs < given.runs:
        try:
            check(seed, tally)
        except Differs as error:
            failures += 1
            sys.stdout.write(f"{error}\n\n")
        seed += 1
    sys.stdout.write(f"seeds {given.seed} to {seed - 1}: {tally}; {failures} differ\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
