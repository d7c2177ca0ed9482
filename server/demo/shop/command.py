"""``ksql demo-shop``: runs the shop demo once and checks every result; its options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from server.demo import frame
from server.demo.shop.data import DAYS, make
from server.demo.shop.story import Story
from server.demo.show import Show, make_console

DEFAULT_ORDERS = 20_000
_LEAST_ORDERS, _MOST_ORDERS = 1_000, 500_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if every result was right, 1 if not or on an error, 130 if interrupted."""
    options = _options(argv)
    show = Show(make_console(color=options.color))
    return frame.guarded("ksql demo-shop", show, options.keep, lambda: run(options, show))


def run(options: frame.Options, show: Show) -> bool:
    """Run the whole demo; return whether every result was right.

    Raises: KsqlError, ServerFailure, Unreachable.
    """
    show.section(f"{DAYS} days of a shop: {options.count:,} orders, and queries that come later")
    with show.doing("drawing the records"):
        shop = make(options.count)
    return frame.staged(show, options.keep, lambda site: Story(site, show, shop).tell())


def _options(argv: Sequence[str] | None) -> frame.Options:
    parser = argparse.ArgumentParser(
        prog="ksql demo-shop",
        description="Run queries over a backlog of a shop's orders, customers, products, payments "
        "and clicks: joins, sessions, windows, aggregates; and check every result.",
    )
    return frame.parsed(parser, "orders", (_LEAST_ORDERS, _MOST_ORDERS), DEFAULT_ORDERS, argv)
