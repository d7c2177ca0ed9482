"""`python -m tests.upgrades [--pairs N] [--seed N]`: many chains in memory, and their end."""

from __future__ import annotations

import argparse
import sys

from tests.upgrades.chains import Chain, Disagreement, Tally

PAIRS = 3600
IN_A_CHAIN = 6


def main() -> int:
    """Run chains until there are so many pairs; the disagreements are printed."""
    options = argparse.ArgumentParser(prog="python -m tests.upgrades")
    options.add_argument("--pairs", type=int, default=PAIRS)
    options.add_argument("--seed", type=int, default=1, help="of the first chain")
    given = options.parse_args()
    tally, seed, failures = Tally(), given.seed, 0
    while tally.pairs < given.pairs:
        try:
            Chain(seed).run(IN_A_CHAIN, tally)
        except Disagreement as error:
            failures += 1
            sys.stdout.write(f"{error}\n\n")
        seed += 1
    chains = seed - given.seed
    sys.stdout.write(f"{chains} chains, {tally.summary()}; {failures} disagreements\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
