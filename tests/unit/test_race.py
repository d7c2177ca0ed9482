"""The race with Kafka Streams: its checks accept right outputs and no others; its ratios."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME

from tests.bench.peers import checks
from tests.bench.peers.checks import Outputs, WrongOutput
from tests.bench.peers.inputs import BASE_MS, Orders, Payments
from tests.bench.peers.rounds import Rounds, Run
from tests.bench.peers.workloads import BY_NAME, DECLARED, WORKLOADS
from tests.bench.statements import AMOUNTS, LEAST
from tests.unit.world import World

RECORDS = 400
ORDERS = Orders("orders", 7, per_ms=1)
PAYMENTS = Payments("payments", 7)


class Written:
    """A record of an output topic."""

    def __init__(self, key, row):
        self._key, self._row = key, row

    def key(self):
        return self._key

    def value(self):
        return None if self._row is None else json.dumps(self._row).encode()

    def partition(self):
        return 0

    def timestamp(self):
        return TIMESTAMP_CREATE_TIME, 1


def outputs(monkeypatch, written, *, every_change=True):
    monkeypatch.setattr(checks, "read", lambda _bootstrap, _topic: iter(written))
    return Outputs("b", "t", RECORDS, every_change=every_change)


def long(number):
    return number.to_bytes(8, "big")


def filtered():
    return [
        Written(b"%d" % key, {"ID": key, "AMOUNT": number % AMOUNTS, "LABEL": f"NAME{key}"})
        for number, key, _ in ORDERS.numbered(RECORDS)
        if number % AMOUNTS > LEAST
    ]


def counted():
    totals: dict[int, tuple[int, int]] = {}
    for number, key, _ in ORDERS.numbered(RECORDS):
        count, total = totals.get(key, (0, 0))
        totals[key] = count + 1, total + number % AMOUNTS
        yield Written(b"%d" % key, {"C": count + 1, "S": totals[key][1]})


def in_windows():
    counts: dict[bytes, int] = {}
    for _, key, at in ORDERS.numbered(RECORDS):
        place = b"%d" % key + long(at // 1_000 * 1_000)
        counts[place] = counts.get(place, 0) + 1
        yield Written(place, {"C": counts[place]})


def in_sessions():
    """No gap of ten seconds: one session for each key, made again by each record."""
    seen: dict[int, tuple[int, int, int]] = {}
    for _, key, at in ORDERS.numbered(RECORDS):
        start, end, count = seen.get(key, (at, at, 0))
        if count:
            yield Written(b"%d" % key + long(end) + long(start), None)
        seen[key] = start, at, count + 1
        yield Written(b"%d" % key + long(at) + long(start), {"C": count + 1})


def joined():
    return [
        Written(b"%d" % key, {"ID": key, "AMOUNT": number % AMOUNTS, "PAID": paid})
        for number, key, at in ORDERS.numbered(RECORDS)
        for paid, other, then in PAYMENTS.numbered(RECORDS)
        if key == other and abs(at - then) <= 10_000
    ]


CHECKS = {
    "filtered": (filtered, lambda engine: engine.filtered(ORDERS)),
    "counted": (counted, lambda engine: engine.counted(ORDERS)),
    "windows": (in_windows, lambda engine: engine.in_windows(ORDERS)),
    "sessions": (in_sessions, lambda engine: engine.in_sessions(ORDERS)),
    "joined": (joined, lambda engine: engine.joined(ORDERS, PAYMENTS)),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_accepts_what_is_right_and_misses_nothing(monkeypatch, name):
    written, check = CHECKS[name]
    right = list(written())
    check(outputs(monkeypatch, right))
    with pytest.raises(WrongOutput):
        check(outputs(monkeypatch, right[:-1]))
    if name != "sessions":  # where the same change again is no other result
        with pytest.raises(WrongOutput):
            check(outputs(monkeypatch, [*right, right[-1]]))


def test_fewer_changes_are_right_only_where_they_are_coalesced(monkeypatch):
    last = list({record.key(): record for record in counted()}.values())
    outputs(monkeypatch, last, every_change=False).counted(ORDERS)
    with pytest.raises(WrongOutput, match="changes"):
        outputs(monkeypatch, last).counted(ORDERS)


def test_the_ratios_are_of_medians():
    rounds = Rounds("W", "about", every_change=True)
    rounds.ours = [Run(rate, 8.0, 2.0, 900) for rate in (50.0, 80.0, 90.0)]
    rounds.theirs = [Run(rate, 4.0, 1.0, 300, 200.0) for rate in (90.0, 100.0, 400.0)]
    assert rounds.ratios() == {
        "throughput": 0.8,
        "throughput_of_steady": 0.4,
        "cpu": 2.0,
        "memory": 3.0,
    }


def test_every_statement_is_one_that_the_service_takes():
    world = World(*DECLARED.values())
    for workload in BY_NAME.values():
        right = workload.right.topic if workload.right else ""
        name = f"made_{workload.name}"
        world.run(workload.statement.format(name=name, left=workload.left.topic, right=right))
        assert world.catalog.sources[name.upper()].kind == workload.kind
    assert len(world.catalog.queries) == len(BY_NAME) > len(WORKLOADS)


def test_the_inputs_are_in_the_order_of_their_times():
    times = [at for _, _, at in Orders("o", 7, per_ms=3).numbered(10)]
    assert times == [BASE_MS + number // 3 for number in range(10)]
