"""Flink SQL in a JVM of its own that stays warm; built from the sources in ``java``."""

from __future__ import annotations

import contextlib
import string
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.nexmark.queries import FOLDER, Query
from tests.bench.peers.streams import BUILD, WarmJvm, build, started

_OPENS = ("java.lang", "java.util", "java.util.concurrent", "java.time", "java.net", "java.nio")
_EVERY_MS = 2_000
"""Of checkpoints and of mini-batches, as Kafka Streams commits in the other race."""
_SETTINGS = {
    "pipeline.object-reuse": "true",
    "state.backend.type": "hashmap",
    "execution.checkpointing.interval": f"{_EVERY_MS} ms",
    "execution.checkpointing.mode": "AT_LEAST_ONCE",
    "taskmanager.memory.managed.size": "512m",
    "taskmanager.memory.network.min": "128m",
    "taskmanager.memory.network.max": "128m",
    "execution.checkpointing.checkpoints-after-tasks-finish": "false",
}
_TABLES = {
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": f"{_EVERY_MS} ms",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}


@dataclass(frozen=True)
class Times:
    """When a query was begun and had committed all results; how long its job ran (milliseconds)."""

    start: int
    finished: int
    running: int

    def seconds(self) -> float:
        """With the start of the local cluster and the planning."""
        return (self.finished - self.start) / 1000


class Flink(WarmJvm):
    """The JVM."""

    def __init__(self, process: subprocess.Popen[str], bootstrap: str, state: Path) -> None:
        super().__init__(process)
        self._bootstrap = bootstrap
        self._state = state

    def run(self, query: Query, topic: str) -> Times:
        """Run a query over its whole input into a topic.

        Raises: PeerFailed.
        """
        checkpoints = {"execution.checkpointing.dir": self._state.as_uri()}
        order = {
            "statements": statements(query, self._bootstrap, topic),
            "settings": _SETTINGS | checkpoints,
            "tables": _TABLES,
        }
        return Times(**self.answer(query.name, order))


def statements(query: Query, bootstrap: str, topic: str) -> list[str]:
    """Return the statements of a query: sources, the table of its result, INSERT."""
    kafka = f"'properties.bootstrap.servers'='{bootstrap}', 'properties.group.id'='{topic}'"
    reads = "'scan.startup.mode'='earliest-offset', 'scan.bounded.mode'='latest-offset'"
    values = {
        "source": f"'connector'='kafka', {kafka}, {reads}, 'format'='json'",
        "append": f"'connector'='kafka', {kafka}, 'topic'='{topic}', 'format'='json'",
        "upsert": f"'connector'='upsert-kafka', {kafka}, 'topic'='{topic}', "
        "'key.format'='json', 'value.format'='json'",
    }
    sources = (FOLDER / "flink" / "sources.sql").read_text(encoding="utf-8")
    text = string.Template(sources + query.flink).substitute(values)
    return [each.strip() for each in text.split(";") if each.strip()]


@contextlib.contextmanager
def flink(bootstrap: str) -> Iterator[Flink]:
    """Start the JVM for the length of a block; Maven fetches its libraries before, once."""
    class_path = build(BUILD.with_name("nexmark"), FOLDER / "java")
    opens = (f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENS)
    with started(class_path, "FlinkPeer", *opens) as (process, state):
        yield Flink(process, bootstrap, state)
