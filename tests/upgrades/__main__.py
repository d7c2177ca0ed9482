"""`python -m tests.upgrades [--pairs N] [--stories N] [--seed N]`: chains and stories in memory."""

from __future__ import annotations

import argparse
import sys

from tests.upgrades import chains as replacements
from tests.upgrades.chains import Chain, Disagreement
from tests.upgrades.linked import Story, Tally, Unlike
from tests.upgrades.readers import ReadStory

PAIRS = 3600
IN_A_CHAIN = 6
STORIES = 600


def main() -> int:
    """Run chains until there are so many pairs, then stories; the disagreements are printed."""
    options = argparse.ArgumentParser(prog="python -m tests.upgrades")
    options.add_argument("--pairs", type=int, default=PAIRS)
    options.add_argument("--stories", type=int, default=STORIES, help="of tables of tables")
    options.add_argument("--seed", type=int, default=1, help="of the first chain and story")
    given = options.parse_args()
    failures = run_chains(given.pairs, given.seed)
    for kind in (Story, ReadStory):
        failures += run_stories(kind, given.stories, given.seed)
    return 1 if failures else 0


def run_stories(kind: type[Story], stories: int, first: int) -> int:
    """Run so many; return how many end with other rows than they should."""
    tally, failures = Tally(), 0
    for seed in range(first, first + stories):
        try:
            tally.add(kind(seed).run())
        except Unlike as error:
            failures += 1
            sys.stdout.write(f"{error}\n\n")
    steps = ", ".join(f"{count} {name}" for name, count in sorted(tally.steps.items()))
    sys.stdout.write(
        f"{stories} of {kind.__name__}, {tally.compared} results compared, {steps}; "
        f"{failures} disagreements\n"
    )
    return failures


def run_chains(pairs: int, first: int) -> int:
    """Run chains until there are so many pairs; return how many disagree with the model."""
    tally, seed, failures = replacements.Tally(), first, 0
    while tally.pairs < pairs:
        try:
            Chain(seed).run(IN_A_CHAIN, tally)
        except Disagreement as error:
            failures += 1
            sys.stdout.write(f"{error}\n\n")
        seed += 1
    chains = seed - first
    sys.stdout.write(f"{chains} chains, {tally.summary()}; {failures} disagreements\n")
    return failures


if __name__ == "__main__":
    sys.exit(main())
