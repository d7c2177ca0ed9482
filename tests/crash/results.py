"""The lines of a matrix that takes longer than one run: a file keeps them."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

Key = tuple[str, str, str, str]
"""Guarantee, kind, point and fault."""


@dataclass(frozen=True)
class Row:
    """One point of one query; ``plan`` is the one that runs afterwards, ``wrong`` empty if good.

    ``seconds`` are those of the ``together`` points of which it was one, ``answer`` is why the
    statement did not succeed.
    """

    guarantee: str
    kind: str
    point: str
    fault: str
    plan: str
    seconds: float
    together: int
    wrong: str = ""
    answer: str = ""

    @property
    def key(self) -> Key:
        """Return the point that it is about."""
        return self.guarantee, self.kind, self.point, self.fault

    @property
    def line(self) -> str:
        """Return it as a person reads it."""
        ending = f"WRONG {self.wrong}" if self.wrong else f"ok, {self.plan} {self.answer}".strip()
        seconds = f"{self.seconds:.0f} s for {self.together}"
        return f"| {' | '.join((*self.key, seconds, ending))} |"


class Results:
    """The lines of all runs, kept in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        content = file.read_text(encoding="utf-8") if file.exists() else ""
        self.rows = [Row(**json.loads(line)) for line in content.splitlines()]

    def add(self, row: Row) -> None:
        """Keep a line, and say it."""
        self.rows.append(row)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row)) + "\n")
        sys.stdout.write(row.line + "\n")
        sys.stdout.flush()

    @property
    def known(self) -> set[Key]:
        """The points that were run."""
        return {row.key for row in self.rows}

    @property
    def last(self) -> list[Row]:
        """The newest line of each point."""
        return list({row.key: row for row in self.rows}.values())

    def status(self, table: Callable[[Sequence[Row]], str]) -> int:
        """Print a table of them; 1 if a point is wrong."""
        wrong = [row for row in self.last if row.wrong]
        endings = "".join(f"WRONG, {row.line}\n" for row in wrong)
        sums = f"{len(self.last)} points, {len(wrong)} wrong"
        sys.stdout.write(f"{table(self.last)}\n{endings}{sums}\n")
        return int(bool(wrong))


def options(
    name: str, text: str, guarantees: Sequence[str], kinds: Sequence[str], faults: Sequence[str]
) -> argparse.ArgumentParser:
    """The command line of a matrix."""
    parser = argparse.ArgumentParser(prog=name, description=text)
    parser.add_argument("--guarantee", choices=guarantees, action="append")
    parser.add_argument("--kind", choices=kinds, action="append")
    parser.add_argument("--fault", choices=faults, action="append")
    parser.add_argument("--only", default="", help='points whose "POINT, FAULT" holds this text')
    parser.add_argument("--results", type=Path, help="a file that keeps a line per point")
    parser.add_argument("--resume", action="store_true", help="leave out what the file has")
    parser.add_argument("--table", action="store_true", help="only print what the file has")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    return parser


def is_chosen(chosen: argparse.Namespace, key: Key, done: Collection[Key]) -> bool:
    """Whether the command line means a point that was not run yet."""
    guarantee, kind, point, fault = key
    return (
        (not chosen.guarantee or guarantee in chosen.guarantee)
        and (not chosen.kind or kind in chosen.kind)
        and (not chosen.fault or fault in chosen.fault)
        and chosen.only in f"{point}, {fault}"
        and key not in done
    )


def carry_out(
    chosen: argparse.Namespace,
    run: Callable[[argparse.Namespace, Path, Results], None],
    table: Callable[[Sequence[Row]], str],
) -> int:
    """Run a matrix in a folder of its own, and print its table; the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="ksql-matrix-"))
    results = Results(chosen.results or folder / "results.jsonl")
    try:
        if not chosen.table:
            run(chosen, folder, results)
    finally:
        status = results.status(table)
        if not chosen.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return status


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
