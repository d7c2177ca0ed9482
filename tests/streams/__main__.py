"""`python -m tests.streams [--inputs N] [--spread N] [--seed N] [--shape NAME]`: all shapes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from tests.streams import kept, ours
from tests.streams.cases import Case, generated
from tests.streams.compare import plain, shown, shrunk
from tests.streams.oracle import Oracle, Result
from tests.streams.partitions import differing, listed
from tests.streams.shapes import ALL, SHAPES
from tests.streams.spread import spread

INPUTS, SPREAD = 2100, 1400
_SHOWN = 5
Differing = Callable[[Oracle, Case], Case | None]
"""The case whose results are others: the same, or its records in another order."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare; the smallest form of the first cases of each shape that differ is printed."""
    options = argparse.ArgumentParser(prog="python -m tests.streams")
    options.add_argument("--inputs", type=int, default=INPUTS, help="of one partition")
    options.add_argument("--spread", type=int, default=SPREAD, help="over several partitions")
    options.add_argument("--seed", type=int, default=1, help="of the first input of each shape")
    options.add_argument("--shape", action="append", choices=sorted(ALL))
    given = options.parse_args(arguments)
    count = failed = 0
    with Oracle() as oracle:
        for each in kept.every():
            if plain(oracle.results(each.case)) != plain(each.results):
                failed += 1
                _say(f"kept results are not those of Kafka Streams: {each.why}")
        for inputs, shapes, make, differs in (
            (given.inputs, SHAPES, generated, _differing),
            (given.spread, ALL, spread, differing),
        ):
            chosen = [shape for shape in given.shape or shapes if shape in shapes]
            each_shape = -(-inputs // max(len(chosen), 1))
            count += each_shape * len(chosen)
            for shape in chosen if each_shape else ():
                cases = [make(shape, given.seed + number) for number in range(each_shape)]
                failed += _compared(oracle, shape, cases, differs)
    _say(f"{count} inputs from seed {given.seed} on: {failed} differ")
    return 1 if failed else 0


def _compared(oracle: Oracle, shape: str, cases: Sequence[Case], differs: Differing) -> int:
    def differ(case: Case) -> bool:
        return differs(oracle, case) is not None

    results, failed = 0, 0
    for number, case in enumerate(cases):
        results += len(oracle.results(case))
        if not differ(case):
            continue
        failed += 1
        if failed <= _SHOWN:
            small = differs(oracle, shrunk(case, differ))
            assert small
            _say(f"input {number}: {shown(small, oracle.results(small), _ours(small))}\n")
    spread_ = " over partitions" if "partitions" in cases[0].given else ""
    _say(f"{shape}{spread_}: {len(cases)} inputs, {results} results, {failed} differ")
    return failed


def _ours(case: Case) -> list[Result]:
    return listed(case) if "partitions" in case.given else ours.results(case)


def _differing(oracle: Oracle, case: Case) -> Case | None:
    """Compare ours alone, and among records of other partitions."""
    theirs, among = plain(oracle.results(case)), ours.among_others(case)
    same = plain(ours.results(case)) == theirs and (among is None or plain(among) == theirs)
    return None if same else case


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
