"""Small programs for the runtime tests, by the plan's ``kind``; workers import this module."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import lru_cache
from pathlib import Path

from ksql.exec.operators.base import Record
from tests.waits import await_true


class Ingest:
    """Records keyed by the Kafka key (``count``)."""

    def __init__(self, plan):
        self.plan = plan

    def add(self, batch, log):
        begin(self.plan, batch)
        columns = zip(
            batch.keys, batch.values, batch.timestamps, batch.partitions, batch.offsets, strict=True
        )
        return [Record(0, k, (v.decode(),), t, 0, p, o) for k, v, t, p, o in columns]

    def finish(self):
        return []


class Program:
    def __init__(self, plan):
        self.plan = plan
        self.query_id = plan.get("id", "q")
        self.sink_topic = plan["sink"]
        self.changes: frozenset[int] = frozenset()
        self.laned = self.combined_windows = False
        self.window_bytes = None
        self.placement = ""
        self.topics = tuple(plan.get("topics", ()))
        self.stages = {"copy": 0, "tell": 0, "count": 1, "count2": 2}[plan["kind"]]

    def buckets_of(self, count):
        """Buckets go by the keys' checksums."""
        del count

    def straight(self, batch, log):
        """Copies (``copy``), or all that it was given (``tell``)."""
        begin(self.plan, batch)
        if self.plan["kind"] == "tell":
            return [(None, feed(batch, i), 1, None) for i in range(len(batch.keys))]
        headers = batch.headers or [None] * len(batch.keys)
        out = []
        for i, value in enumerate(batch.values):
            if value == b"bad":
                log("copy", "bad value", None)
                continue
            seen = {
                "tag": self.plan.get("tag"),
                "topic": batch.topics[i],
                "partition": batch.partitions[i],
                "offset": batch.offsets[i],
                "value": value[: 8 if self.plan.get("short") else None].decode(),
            }
            text = json.dumps(seen).encode()
            out.append((batch.keys[i], text, batch.timestamps[i], headers[i]))
        return out

    def ingest(self, _ahead=None):
        return Ingest(self.plan)

    def step(self, stage, records, store, log):
        """To another key: the count of all keys with the same first letter."""
        return [r._replace(key=r.key[:1]) for r in records]

    def last_step(self, records, store, log):
        store.load(b"counts", {r.key for r in records})
        out = []
        for record in sorted(records, key=lambda r: (r.partition, r.offset)):
            state = store.get(b"counts", record.key) or {}
            state["n"] = state.get("n", 0) + 1
            if self.plan.get("last"):  # what a later version of the plan adds
                state["last"] = record.row[0]
            store.put(b"counts", record.key, state)
            text = json.dumps({**state, "tag": self.plan.get("tag")}).encode()
            out.append((record.key, text, record.timestamp, None))
        return out


def feed(batch, i):
    headers = batch.headers[i] if batch.headers else None
    seen = {
        "topic": batch.topics[i],
        "partition": batch.partitions[i],
        "offset": batch.offsets[i],
        "timestamp": batch.timestamps[i],
        "key": shown(batch.keys[i]),
        "value": shown(batch.values[i]),
        "headers": headers and [[name, shown(value)] for name, value in headers],
    }
    return json.dumps(seen).encode()


def shown(data):
    return None if data is None else data.hex()


def begin(plan, batch):
    """Rest; wait for the test; fail, or die, once per mark file, when a certain value comes by."""
    time.sleep(plan.get("slow_s", 0))
    if "waits_at" in plan:
        await_opened(Path(plan["waits_at"]))
    for what in ("raise", "die"):
        mark = plan.get(f"{what}_mark")
        if mark and b"CRASH" in batch.values and not Path(mark).exists():
            Path(mark).touch()
            if what == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("a wire came loose")


def await_opened(gate):
    """Show that a task is at the gate, a directory, and wait until the test has opened it."""
    (gate / "reached").touch()
    await_true("the gate is open", (gate / "open").exists)


@lru_cache
def load(plan_json):
    plan = json.loads(plan_json)
    if plan["kind"] == "broken":
        raise ValueError("this plan cannot be compiled")
    return Program(plan)


def no_such_plan(_plan_json):
    raise ValueError("no_such_plan")
