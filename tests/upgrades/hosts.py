"""The hosts on which a chain of replacements runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

from ksql.control.engine.errors import NoFormerVersion, UpgradeRefused
from ksql.control.planning.rebuild import BeginningLost
from ksql.control.rebuild_supervisor import RebuildSupervisor
from ksql.control.statements.execute import RequestFailed
from ksql.core.config import Settings
from ksql.core.errors import KsqlError
from ksql.exec.memory.driver import MemoryTopics
from ksql.functions.registry import BUILTINS, Functions
from ksql.functions.udf import load_sources
from ksql.sql.upgrade.verdict import Verdict
from tests.unit.world import World, load
from tests.upgrades.chance import Event

NOW_MS = 10_000_000
"""The service's time, later than that of every record."""
BUMP = """from typing import Optional
from ksql.functions.udf import udf
@udf
def bump(x: Optional[int]) -> Optional[int]:
    return None if x is None else x + {}
"""


class Host(Protocol):
    """A service in which a chain runs."""

    tag: str
    start_s: int
    recodes: bool
    """Whether there is the user's function, and ``recode`` changes it."""
    waits: bool
    """Whether a candidate is cut over by ``cut_over``, and not before; else by ``begin``."""
    loses: bool
    """Whether ``lose`` takes records away."""
    buckets: bool
    """Whether a query made without RETENTION_MS has several buckets, each with a stream time."""

    def run(self, text: str) -> None:
        """Execute statements that must be accepted."""

    def replace(self, text: str) -> Verdict | None:
        """Execute a replacement; None if it was refused, with a reason."""

    def begin(self, text: str) -> bool:
        """Execute a rebuild, a backfill or a rollback; False if it was refused."""

    def cut_over(self) -> None:
        """Let the candidate and the readers of the result read, and take the query over."""

    def traces(self) -> tuple[Any, ...]:
        """Return what a candidate that is given up must leave as it was."""

    def feed(self, events: Sequence[Event]) -> Sequence[Event]:
        """Write the records and wait until they are processed; gives the order in which."""

    def as_candidate(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the records in the order in which a candidate reads them."""

    def lose(self, topic: str, count: int) -> None:
        """Let retention take so many records from a topic's beginning."""

    def recode(self, number: int) -> None:
        """Start again with a user's function that adds another number."""

    def records(self, topic: str) -> Sequence[tuple[bytes | None, bytes | None]]:
        """Keys and values of a topic."""


class LosingTopics(MemoryTopics):
    """Topics that can lose their beginning.

    What is lost stays as a record without value and time, so that offsets are what they were.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lost: dict[str, int] = {}

    def lost(self, name: str) -> int:
        return self._lost.get(name, 0)

    def lose(self, name: str, count: int) -> None:
        """Take so many records from the beginning."""
        self._lost[name] = count
        log = self.records[name]
        log[:count] = [record._replace(value=None, timestamp=-1) for record in log[:count]]


class InMemory:
    """One process, no Kafka, no Spark."""

    tag = ""
    start_s = 4000  # late records are not before the epoch
    recodes = True
    waits = True
    loses = True
    buckets = False

    def __init__(self) -> None:
        self.topics = LosingTopics()
        self.world = World(functions=functions(1), topics=self.topics)
        self.world.engine.now_ms = lambda: NOW_MS

    def recode(self, number: int) -> None:
        engine, runner = self.world.engine, self.world.runner
        load(engine, runner, functions(number))
        for version in list(runner.running):
            runner.stop(version)
        runner.resume(engine.catalog.queries.values())

    def run(self, text: str) -> None:
        self.world.run(text)

    def replace(self, text: str) -> Verdict | None:
        statement = self.world.parse(text)
        try:
            verdict = self.world.engine.dry_run(statement, text, self.world.settings).verdict
        except UpgradeRefused as refused:
            if refused.verdict and refused.verdict.reasons:
                return None
            raise
        self.world.run(text)
        return verdict

    def begin(self, text: str) -> bool:
        before = self.traces()
        try:
            self.world.run(text)
        except RequestFailed as failed:
            if not _is_refusal(failed.error):
                raise failed.error from failed
            assert self.traces() == before
            return False
        return True

    def cut_over(self) -> None:
        self.world.drain()
        RebuildSupervisor(self.world.engine, Settings()).step()
        assert not self.world.catalog.rebuilds
        self.world.drain()  # the readers of the difference

    def traces(self) -> tuple[Any, ...]:
        runner, catalog = self.world.runner, self.world.catalog
        kept = catalog.queries, catalog.sources, catalog.rebuilds, catalog.former_versions
        return (*kept, set(self.topics.known), set(runner.running), set(runner._resting))

    def as_candidate(self, events: Sequence[Event]) -> Sequence[Event]:
        return events  # their order over all topics is kept

    def feed(self, events: Sequence[Event]) -> Sequence[Event]:
        for event in events:
            self.topics.append(event.source, event.key.encode(), event.value, event.time_s * 1000)
        self.world.drain()
        return events

    def lose(self, topic: str, count: int) -> None:
        self.topics.lose(topic, count)

    def records(self, topic: str) -> Sequence[tuple[bytes | None, bytes | None]]:
        return [(each.key, each.value) for each in self.topics.records.get(topic, [])]


def _is_refusal(error: KsqlError) -> bool:
    """Whether an upgrade was refused for what docs/upgrades.md names."""
    other_rows = "has other rows than its readers know" in error.message
    return other_rows or isinstance(error, UpgradeRefused | BeginningLost | NoFormerVersion)


@cache
def functions(number: int) -> Functions:
    """All functions, and the user's that adds this number."""
    library, problems = load_sources({"bump.py": BUMP.format(number)})
    assert not problems
    return BUILTINS.with_(library)
