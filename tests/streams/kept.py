"""Cases that are kept with what Kafka Streams made of them, so that tests need no Java.

``python -m tests.streams.kept SHAPE SEED WHY [--spread]`` keeps one more: while ours differ as
small as still does, so before the difference is mended. One over several partitions is else kept
with its records in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.streams import ours
from tests.streams.cases import Case, generated
from tests.streams.compare import plain, shrunk
from tests.streams.oracle import Oracle, Result
from tests.streams.partitions import differing, in_sequence
from tests.streams.shapes import ALL
from tests.streams.spread import spread

FILE = Path(__file__).with_name("kept.jsonl")


@dataclass(frozen=True)
class Kept:
    """A case, the rule that it shows, and the results of Kafka Streams."""

    why: str
    case: Case
    results: list[Result]

    @property
    def text(self) -> str:
        """Its line in the file."""
        line = {"why": self.why, "given": self.case.given, "records": self.case.records}
        return json.dumps({**line, "results": self.results})


def every() -> list[Kept]:
    """All that are kept."""
    return [_read(line) for line in FILE.read_text().splitlines()]


def of_one_partition() -> list[Kept]:
    """Those of one partition."""
    return [each for each in every() if "partitions" not in each.case.given]


def over_partitions() -> list[Kept]:
    """Those over several partitions."""
    return [each for each in every() if "partitions" in each.case.given]


def _read(text: str) -> Kept:
    line = json.loads(text)
    case = Case(line["given"], tuple(map(tuple, line["records"])))
    return Kept(line["why"], case, list(map(tuple, line["results"])))


def main(arguments: Sequence[str]) -> int:
    """Keep one more."""
    options = argparse.ArgumentParser(prog="python -m tests.streams.kept")
    options.add_argument("shape", choices=sorted(ALL))
    options.add_argument("seed", type=int)
    options.add_argument("why")
    options.add_argument("--spread", action="store_true", help="over several partitions")
    given = options.parse_args(arguments)
    with Oracle() as oracle:
        case = (_spread if given.spread else _generated)(oracle, given.shape, given.seed)
        line = Kept(given.why, case, oracle.results(case)).text
    with FILE.open("a") as file:
        file.write(line + "\n")
    return 0


def _generated(oracle: Oracle, shape: str, seed: int) -> Case:
    def differs(case: Case) -> bool:
        return plain(oracle.results(case)) != plain(ours.results(case))

    case = generated(shape, seed)
    return shrunk(case, differs) if differs(case) else case


def _spread(oracle: Oracle, shape: str, seed: int) -> Case:
    case = spread(shape, seed)
    if differing(oracle, case) is None:
        return in_sequence(case)
    small = differing(oracle, shrunk(case, lambda fewer: differing(oracle, fewer) is not None))
    assert small
    return small


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
