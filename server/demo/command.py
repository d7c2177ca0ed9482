"""``ksql demo``: its options and its run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from server.demo import frame
from server.demo.data import TOTAL, load
from server.demo.show import Show, make_console
from server.demo.story import Story

DEFAULT_FLIGHTS = 50_000
_LEAST_FLIGHTS = 1_000


@dataclass(frozen=True, slots=True)
class Options:
    """The user's choices."""

    flights: int
    keep: Path | None
    color: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if every answer was right, 1 if not or on an error, 130 if interrupted."""
    options = _options(argv)
    show = Show(make_console(color=options.color))
    return frame.guarded("ksql demo", show, options.keep, lambda: run(options, show))


def run(options: Options, show: Show) -> bool:
    """Run the whole demo; return whether every answer was right.

    Raises: KsqlError, ServerFailure, Unreachable.
    """
    show.section(f"{options.flights:,} departures from New York in 2013")
    with show.doing("reading the departures"):
        data = load(options.flights)
    return frame.staged(show, options.keep, lambda site: Story(site, show, data).tell())


def _options(argv: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(
        prog="ksql demo",
        description="Run the service on real departures: filter, join, aggregate, replace queries "
        "while records come in, and check every answer.",
    )
    parser.add_argument(
        "--flights",
        metavar="N",
        type=frame.count_between(_LEAST_FLIGHTS, TOTAL),
        default=DEFAULT_FLIGHTS,
        help=f"how many departures, {_LEAST_FLIGHTS} to {TOTAL} (default: {DEFAULT_FLIGHTS})",
    )
    frame.add_common_options(parser)
    chosen = parser.parse_args(sys.argv[2:] if argv is None else argv)
    return Options(chosen.flights, chosen.keep, not chosen.no_color)
