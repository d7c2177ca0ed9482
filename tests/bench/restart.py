"""How long a query with a large state needs from its start to its first finished batch.

The state is written in random order, so that every batch touches pages all over it: that leaves the
longest changelogs. The query is paused as soon as it has caught up, which is when the least of them
are in a snapshot; the service is stopped and started again, and the query resumed.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.spark.checkpoint import checkpoint
from ksql.spark.query.internals import batches_after
from tests.bench.producing import produce
from tests.bench.report import Result
from tests.bench.site import EARLIEST, PATIENCE_S, Site, Stuck, site

STATE_MIB = 1024
_NOTE_BYTES = 1000
_RECORDS_PER_BATCH = 50_000
_TOUCHED = 1_000
_REPORT_S = 30.0
_SOURCE = "CREATE STREAM noted (k BIGINT KEY, note STRING) WITH (KAFKA_TOPIC='noted', \
VALUE_FORMAT='JSON', PARTITIONS=4);"
_KEPT = "CREATE TABLE kept WITH (KAFKA_TOPIC='kept') AS SELECT k, COUNT(*) AS notes, \
LEN(LATEST_BY_OFFSET(note)) AS letters FROM noted GROUP BY k;"
_PROPERTIES = {**EARLIEST, "ksql.query.max.records.per.batch": str(_RECORDS_PER_BATCH)}
_STATE_FILES = {"*.changelog": "changelogs", "*.zip": "snapshots", "*.sst": "SST files"}
_LOADING = {
    "rocksdbLoadLatencyMs": "load of all stores",
    "rocksdbLoadFromSnapshotLatencyMs": "of it snapshots",
    "rocksdbReplayChangeLogLatencyMs": "of it changelogs",
}


class WrongState(AssertionError):
    """A query has not kept, or not found, what it should."""


@dataclass(frozen=True)
class Restart:
    """A query with so much state, stopped and started."""

    state_mib: int = STATE_MIB
    name: str = "restart"

    def run(self) -> Result:
        """Make the state, start again, wait for one batch."""
        with tempfile.TemporaryDirectory(prefix="ksql-bench-") as state:
            with site(Path(state)) as first:
                query_id, statement = self._fill(first)
            with site(Path(state)) as second:
                return self._continue(second, query_id, statement)

    def _fill(self, site: Site) -> tuple[QueryId, str]:
        notes = -(-(self.state_mib << 20) // _NOTE_BYTES)
        site.execute(_SOURCE)
        _produce(site, _shuffled(notes))
        began = time.monotonic()
        site.execute(_KEPT, _PROPERTIES)
        site.await_end("kept", "noted")
        seconds = time.monotonic() - began
        query_id = site.query_of("kept")
        running = site.service.node.runner.running[QueryVersion(query_id)]
        running.totals()  # counts the last batch
        size = sum(stage.size_bytes for stage in running.state_sizes())
        if size < self.state_mib << 20:
            raise WrongState(f"{size >> 20} MiB of state instead of {self.state_mib}")
        site.execute(f"PAUSE {query_id};")
        _produce(site, iter(range(min(_TOUCHED, notes))))
        return query_id, f"{size >> 20} MiB, {notes:,} keys, made in {seconds:.0f} s"

    def _continue(self, site: Site, query_id: QueryId, statement: str) -> Result:
        place = site.service.node.runner.checkpoint(QueryVersion(query_id))
        last = checkpoint.last_committed(place)
        files = _files(place)
        began = time.monotonic()
        site.execute(f"RESUME {query_id};")
        while checkpoint.last_committed(place) == last:
            if time.monotonic() > began + PATIENCE_S:
                running = site.service.node.runner.running[QueryVersion(query_id)]
                raise Stuck(f"{query_id}: {running.status()}")
            time.sleep(0.01)
        seconds = time.monotonic() - began
        site.await_end("kept", "noted")
        report = f"{statement}; on disk {files}; {self._spent(site, query_id)}"
        return Result(self.name, seconds=round(seconds, 1), note=report)

    def _spent(self, site: Site, query_id: QueryId) -> str:
        """Return what Spark says of the batch: its steps, and the tasks' work on their stores."""
        query = site.service.node.runner.running[QueryVersion(query_id)]._query
        deadline = time.monotonic() + _REPORT_S
        while not (batches := [b for b in batches_after(query, "") if b["numInputRows"]]):
            if time.monotonic() > deadline:
                raise Stuck(f"{query_id}: no report of its batch")
            time.sleep(0.1)
        batch = batches[0]
        steps = ", ".join(f"{k} {v}" for k, v in batch["durationMs"].items() if v)
        return f"ms: {steps}; in tasks: {_loading(batch)}"


def _loading(batch: Mapping[str, Any]) -> str:
    """Return what Spark counts of the loading, summed over the tasks; -1: it does not say."""
    (operator,) = batch["stateOperators"]
    metrics = operator.get("customMetrics") or {}
    parts = [f"{label} {metrics.get(name, -1)}" for name, label in _LOADING.items()]
    replayed = metrics.get("rocksdbNumReplayChangelogFiles", -1)
    return ", ".join([*parts, f"changelogs replayed {replayed}"])


def _shuffled(notes: int) -> Iterator[int]:
    keys = list(range(notes))
    random.Random(1).shuffle(keys)
    return iter(keys)


def _produce(site: Site, keys: Iterator[int]) -> None:
    """Write a note of noise to each key: nothing on the way makes it smaller."""
    chance = random.Random(2)
    producer = site.producer(**{"linger.ms": 20})
    for key in keys:
        note = f'{{"NOTE":"{chance.randbytes(_NOTE_BYTES // 2).hex()}"}}'.encode()
        produce(producer, "noted", note, key.to_bytes(8, "big"))
    producer.flush()


def _files(place: Path) -> str:
    entries = []
    for pattern, name in _STATE_FILES.items():
        sizes = [file.stat().st_size for file in (place / "state").rglob(pattern)]
        entries.append(f"{len(sizes)} {name} of {sum(sizes) >> 20} MiB")
    return ", ".join(entries)
