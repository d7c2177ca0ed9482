"""Cases that are kept with what Kafka Streams made of them, so that tests need no Java.

``python -m tests.streams.kept SHAPE SEED WHY`` keeps one more: while our results differ as small as
still does, so before the difference is mended.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.streams import ours
from tests.streams.cases import Case, made
from tests.streams.compare import plain, shrunk
from tests.streams.oracle import Oracle, Result

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


def _read(text: str) -> Kept:
    line = json.loads(text)
    case = Case(line["given"], tuple(map(tuple, line["records"])))
    return Kept(line["why"], case, [(key, row, time) for key, row, time in line["results"]])


def main(arguments: Sequence[str]) -> int:
    """Keep one more."""
    shape, seed, why = arguments
    case = made(shape, int(seed))
    with Oracle() as oracle:
        theirs = plain(oracle.results(case))
        if theirs != plain(ours.results(case)):
            case = shrunk(case, lambda c: plain(oracle.results(c)) != plain(ours.results(c)))
        line = Kept(why, case, oracle.results(case)).text
    with FILE.open("a") as file:
        file.write(line + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
