"""Processes that write, read and watch for as long as a measurement takes; all note the times.

Times are seconds of ``time.monotonic``, which the processes of a machine share.
"""

from __future__ import annotations

import multiprocessing
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, Producer, TopicPartition

from tests.bench.load import Target, loaded_until
from tests.bench.producing import produce

_PATIENCE_S = 120.0
_TURN_S = 0.01


@dataclass
class Series:
    """Measurements in ms by the moment at which they were made."""

    at: array[float] = field(default_factory=lambda: array("d"))
    ms: array[float] = field(default_factory=lambda: array("d"))

    def add(self, at: float, ms: float) -> None:
        """Note one."""
        self.at.append(at)
        self.ms.append(ms)

    def between(self, begin: float, end: float) -> list[float]:
        """Return those of a span, the smallest first."""
        return sorted(ms for at, ms in zip(self.at, self.ms, strict=True) if begin <= at < end)


@dataclass
class Answers:
    """The latencies of reads by the time at which they were due, and the times of failed ones."""

    good: Series = field(default_factory=Series)
    failed: list[float] = field(default_factory=list)


class Client:
    """A process that works until it is stopped, and what it returns then."""

    def __init__(self, work: Callable[..., Any], *args: object) -> None:
        context = multiprocessing.get_context("spawn")
        self._over = context.Event()
        begun = context.Event()
        self._results = context.Queue()
        self._process = context.Process(
            target=_returning, args=(begun, self._results, work, *args, self._over), daemon=True
        )
        self._process.start()
        if not begun.wait(_PATIENCE_S):
            self.kill()
            raise TimeoutError("a client was not started")

    def result(self) -> Any:
        """End its work and return what has come of it."""
        self._over.set()
        result = self._results.get(timeout=_PATIENCE_S)
        self._process.join(_PATIENCE_S)
        return result

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.join()


@contextmanager
def client(work: Callable[..., Any], *args: object) -> Iterator[Client]:
    """A client for the length of a block."""
    working = Client(work, *args)
    try:
        yield working
    finally:
        working.kill()


def _returning(begun: Any, results: Any, work: Callable[..., Any], *args: object) -> None:
    begun.set()
    results.put(work(*args))


def write_records(
    bootstrap: str, topic: str, value: Callable[[int], bytes], first: int, rate: float, over: Any
) -> int:
    """Write so many records a second; return the number of the one after the last.

    Record ``n`` has the time of its writing and goes to partition ``n % 4``, at offset ``n // 4``.
    """
    producer = _producer(bootstrap)
    begin, number = time.monotonic(), first
    while not over.wait(_TURN_S):
        due = first + int((time.monotonic() - begin) * rate)
        for each in range(number, due):
            _produce(producer, topic, value(each), each, round(time.time() * 1000))
        number = max(number, due)
        producer.poll(0)
    producer.flush()
    return number


def fill_topic(
    bootstrap: str, topic: str, value: Callable[[int], bytes], records: int, time_ms: int
) -> None:
    """Write so many records of one time as fast as they go, placed as ``write_records`` does."""
    producer = _producer(bootstrap)
    for number in range(records):
        _produce(producer, topic, value(number), number, time_ms)
    producer.flush()


def _producer(bootstrap: str) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})


def _produce(producer: Producer, topic: str, value: bytes, number: int, time_ms: int) -> None:
    produce(producer, topic, value, partition=number % 4, timestamp=time_ms)


def watch_topic(bootstrap: str, topic: str, ends: Sequence[tuple[int, int]], over: Any) -> Series:
    """Return how old each record of a topic was when a consumer had it, from these ends on.

    A row has the time of the record that changed it last, so this is the query's latency.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench-watch",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 5,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, *place) for place in ends])
    seen = Series()
    while not over.is_set():
        messages = consumer.consume(5_000, 0.02)
        at, now_ms = time.monotonic(), time.time() * 1000
        for message in messages:
            kind, time_ms = message.timestamp()
            if kind != TIMESTAMP_NOT_AVAILABLE and message.value() is not None:
                seen.add(at, now_ms - time_ms)
    consumer.close()
    return seen


def read_rows(target: Target, connections: int, rate: float, over: Any) -> Answers:
    """Ask so many times a second; an answer without one row has failed, and so has none."""
    answers = Answers()
    for answer in loaded_until(target, connections, rate, over.is_set):
        if answer.good:
            answers.good.add(answer.due, answer.ms)
        else:
            answers.failed.append(answer.due)
    return answers
