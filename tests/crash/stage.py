"""A broker and a service on which points are run one after another, and a new one after a fault."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import httpx

from tests.crash.site import Broker, Site
from tests.crash.switch_model import Cell
from tests.crash.switch_world import HaltedQuery
from tests.kafka.records import unique
from tests.kafka.servers import Refused

World = TypeVar("World")


class Ending(NamedTuple):
    """A query after its point: its plan, what is wrong, and the answer of a refused statement."""

    plan: str
    wrong: str
    answer: str


class Stage(Generic[World]):
    """``make`` builds on a started server what the points need."""

    def __init__(self, folder: Path, make: Callable[[Site], World], cores: int) -> None:
        self.folder = folder
        self._make = make
        self._cores = cores
        self._broker: Broker | None = None
        self._site: Site | None = None
        self._world: World | None = None

    def ready(self) -> World:
        """Return the world that the points are run on; made if need be."""
        if self._broker is None:
            self._broker = Broker(self.folder / "kafka")
        if self._world is None:
            place = self.folder / unique("site")
            place.mkdir()
            self._site = Site(self._broker, place, unique("crash") + "_", self._cores)
            self._site.order()
            self._site.start()
            self._world = self._make(self._site)
        return self._world

    def inject(
        self, inject: Callable[[World], Mapping[Cell, HaltedQuery]], cells: Iterable[Cell]
    ) -> tuple[dict[Cell, Ending], float]:
        """Run points of those cells; return their endings, and the seconds that it took.

        If the service fails, each of them is wrong, and the next point gets a new one.
        """
        began = time.monotonic()
        try:
            world = self.ready()
            began = time.monotonic()
            halted = inject(world)
        except (AssertionError, Refused, httpx.HTTPError, OSError, ValueError) as problem:
            self.give_up()
            wrong = f"{type(problem).__name__}: {problem}"
            endings = dict.fromkeys(cells, Ending("", wrong, ""))
        else:
            endings = {
                cell: Ending(each.plan, each.wrong, each.refusal) for cell, each in halted.items()
            }
        return endings, round(time.monotonic() - began, 1)

    def give_up(self) -> None:
        """End the server; the next one is a new service, on the same broker."""
        if self._site is not None:
            self._site.abandon()
        self._site = self._world = None

    def end(self) -> None:
        """End the processes."""
        self.give_up()
        if self._broker is not None:
            self._broker.stop()
            self._broker = None
