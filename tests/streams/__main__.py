"""`python -m tests.streams [--inputs N] [--seed N] [--shape NAME]`: all shapes, N inputs in all."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.streams import kept, ours
from tests.streams.cases import Case, made
from tests.streams.compare import plain, shown, shrunk
from tests.streams.oracle import Oracle, Result
from tests.streams.shapes import SHAPES

INPUTS = 2100
_SHOWN = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare; the smallest form of the first cases of each shape that differ is printed."""
    options = argparse.ArgumentParser(prog="python -m tests.streams")
    options.add_argument("--inputs", type=int, default=INPUTS, help="over all shapes")
    options.add_argument("--seed", type=int, default=1, help="of the first input of each shape")
    options.add_argument("--shape", action="append", choices=sorted(SHAPES))
    given = options.parse_args(arguments)
    shapes = given.shape or list(SHAPES)
    count = -(-given.inputs // len(shapes))
    failed = 0
    with Oracle() as oracle:
        for each in kept.every():
            if plain(oracle.results(each.case)) != plain(each.results):
                failed += 1
                _say(f"kept results are not those of Kafka Streams: {each.why}")
        for shape in shapes:
            failed += _compared(oracle, shape, range(given.seed, given.seed + count))
    _say(f"{count * len(shapes)} inputs from seed {given.seed} on: {failed} differ")
    return 1 if failed else 0


def _compared(oracle: Oracle, shape: str, seeds: range) -> int:
    def differs(case: Case) -> bool:
        return _differs(case, plain(oracle.results(case)))

    results, failed = 0, 0
    for seed in seeds:
        case = made(shape, seed)
        theirs = oracle.results(case)
        results += len(theirs)
        if not _differs(case, plain(theirs)):
            continue
        failed += 1
        if failed <= _SHOWN:
            small = shrunk(case, differs)
            _say(f"seed {seed}: {shown(small, oracle.results(small), ours.results(small))}\n")
    _say(f"{shape}: {len(seeds)} inputs, {results} results, {failed} differ")
    return failed


def _differs(case: Case, theirs: Sequence[Result]) -> bool:
    """Whether ours are others, alone or among records of other partitions."""
    among = ours.among_others(case)
    return plain(ours.results(case)) != theirs or (among is not None and plain(among) != theirs)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
