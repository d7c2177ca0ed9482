"""``ksql demo``: its options and its run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from server.demo import frame
from server.demo.data import TOTAL, load
from server.demo.show import Show, make_console
from server.demo.story import Story

DEFAULT_FLIGHTS = 50_000
_LEAST_FLIGHTS = 1_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if every answer was right, 1 if not or on an error, 130 if interrupted."""
    options = _options(argv)
    show = Show(make_console(color=options.color))
    return frame.guarded("ksql demo", show, options.keep, lambda: run(options, show))


def run(options: frame.Options, show: Show) -> bool:
    """Run the whole demo; return whether every answer was right.

    Raises: KsqlError, ServerFailure, Unreachable.
    """
    show.section(f"{options.count:,} departures from New York in 2013")
    with show.doing("reading the departures"):
        data = load(options.count)
    return frame.staged(show, options.keep, lambda site: Story(site, show, data).tell())


def _options(argv: Sequence[str] | None) -> frame.Options:
    parser = argparse.ArgumentParser(
        prog="ksql demo",
        description="Run the service on real departures: filter, join, aggregate, replace queries "
        "while records come in, and check every answer.",
    )
    return frame.parsed(parser, "flights", (_LEAST_FLIGHTS, TOTAL), DEFAULT_FLIGHTS, argv)
