"""What the outputs of the race must hold, whoever wrote them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

import orjson
from confluent_kafka import Message

from tests.bench.peers.inputs import REGIONS, Orders, Payments, read
from tests.bench.statements import AMOUNTS, LEAST

WINDOW_MS = 1_000
WITHIN_MS = GAP_MS = 10_000
LATE_MS = 1_000


class WrongOutput(AssertionError):
    """A side of the race has not written what it should."""


class Outputs:
    """The output topic of a run, to be compared with what its input says."""

    def __init__(self, bootstrap: str, topic: str, records: int, *, every_change: bool) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._records = records
        self._every_change = every_change
        self.behind_ms, self.late = 0, 0
        """How far the latest record is behind an earlier one of its partition, and how many are
        by more than ``LATE_MS``; the inputs have none."""

    def _read(self) -> Iterator[Message]:
        highest: dict[int, int] = defaultdict(int)
        for message in read(self._bootstrap, self._topic):
            place, time = message.partition() or 0, message.timestamp()[1]
            behind = max(highest[place] - time, 0)
            highest[place] += max(time - highest[place], 0)
            self.behind_ms = max(self.behind_ms, behind)
            self.late += behind > LATE_MS
            yield message

    def _agree(self, actual: object, expected: object, what: str) -> None:
        if actual != expected:
            shown = [repr(each)[:200] for each in (actual, expected)]
            raise WrongOutput(f"{self._topic}: {what}: {shown[0]} instead of {shown[1]}")

    def filtered(self, orders: Orders) -> None:
        """Every order above the least amount once."""
        expected = [0, 0]
        for number, key, _ in orders.numbered(self._records):
            if number % AMOUNTS > LEAST:
                expected[0] += 1
                expected[1] += key
        totals = [0, 0]
        for message in self._read():
            row = orjson.loads(_value(message))
            totals[0] += 1
            totals[1] += row["ID"]
            if row["LABEL"] != f"NAME{row['ID']}":
                raise WrongOutput(f"{self._topic}: {row}")
        self._agree(totals, expected, "records and their ids' sum")

    def counted(self, orders: Orders) -> None:
        """The last totals of each key."""
        expected: dict[bytes, list[int]] = defaultdict(lambda: [0, 0])
        for number, key, _ in orders.numbered(self._records):
            total = expected[b"%d" % key]
            total[0] += 1
            total[1] += number % AMOUNTS
        rows = {key: orjson.loads(value) for key, value in self._last().items()}
        self._agree({key: [row["C"], row["S"]] for key, row in rows.items()}, expected, "totals")

    def in_windows(self, orders: Orders) -> None:
        """The last count of each key and window, by the bytes of the windowed key."""
        expected: dict[bytes, int] = defaultdict(int)
        for _, key, at in orders.numbered(self._records):
            expected[b"%d" % key + _long(at - at % WINDOW_MS)] += 1
        self._agree(self._counts(), expected, "counts")

    def in_sessions(self, orders: Orders) -> None:
        """The last count of each session that was not merged into another."""
        expected: dict[bytes, int] = {}
        last: dict[int, tuple[int, int, int]] = {}
        for _, key, at in orders.numbered(self._records):
            start, end, count = last.get(key, (at, at, 0))
            if at - end > GAP_MS:
                expected[_session(key, start, end)] = count
                start, count = at, 0
            last[key] = (start, at, count + 1)
        for key, (start, end, count) in last.items():
            expected[_session(key, start, end)] = count
        self._agree(self._counts(every_record=False), expected, "sessions")

    def joined_to_table(self, orders: Orders) -> None:
        """Every order once, with its user."""
        expected = sum(key for _, key, _ in orders.numbered(self._records))
        totals = [0, 0]
        for message in self._read():
            row = orjson.loads(_value(message))
            totals[0] += 1
            totals[1] += row["ID"]
            if row["REGION"] != f"r{row['ID'] % REGIONS}":
                raise WrongOutput(f"{self._topic}: {row}")
        self._agree(totals, [self._records, expected], "records and their ids' sum")

    def joined(self, orders: Orders, payments: Payments) -> None:
        """Every pair within the time, by their number and two sums."""
        paid: dict[int, list[int]] = defaultdict(list)
        for _, key, at in payments.numbered(self._records):
            paid[key].append(at)  # one per millisecond: the time is the number
        first = next(at for _, _, at in payments.numbered(1))
        expected = [0, 0, 0]
        for number, key, at in orders.numbered(self._records):
            times = paid[key]
            low, high = bisect_left(times, at - WITHIN_MS), bisect_right(times, at + WITHIN_MS)
            expected[0] += high - low
            expected[1] += (high - low) * (number % AMOUNTS)
            expected[2] += sum(times[low:high]) - (high - low) * first
        totals = [0, 0, 0]
        for message in self._read():
            row = orjson.loads(_value(message))
            totals[0] += 1
            totals[1] += row["AMOUNT"]
            totals[2] += row["PAID"]
        self._agree(totals, expected, "pairs and their sums")

    def _counts(self, *, every_record: bool = True) -> dict[bytes, int]:
        last = self._last(every_record=every_record)
        return {key: orjson.loads(value)["C"] for key, value in last.items()}

    def _last(self, *, every_record: bool = True) -> dict[bytes, bytes]:
        """The last value of each key that has one; one output per record if every change counts."""
        count, last = 0, {}
        for message in self._read():
            count += 1
            last[_key(message)] = message.value()
        if every_record and self._every_change:
            self._agree(count, self._records, "changes")
        return {key: value for key, value in last.items() if value is not None}


def _key(message: Message) -> bytes:
    key = message.key()
    assert isinstance(key, bytes)
    return key


def _value(message: Message) -> bytes:
    value = message.value()
    assert value is not None
    return value


def _long(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _session(key: int, start: int, end: int) -> bytes:
    return b"%d" % key + _long(end) + _long(start)
