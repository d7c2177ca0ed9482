"""The workloads: the statement of our side; ``Shapes.java`` has the equal topologies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.bench.peers.checks import Outputs
from tests.bench.peers.inputs import Orders, Payments, Users

FEW = Orders("peers_orders_10k", 10_000, per_ms=400)
MANY = Orders("peers_orders_600k", 600_000, per_ms=400)
MORE = {
    name: Orders(f"peers_orders_{name.lower()}", keys, per_ms=400)
    for name, keys in (("100K", 100_000), ("1M", 1_000_000), ("5M", 5_000_000))
}
SPREAD = Orders("peers_orders_spread", 10_000, per_ms=10)
SLOW = Orders("peers_orders_slow", 10_000, per_ms=1)
PAYMENTS = Payments("peers_payments", 10_000)
USERS = Users("peers_users")
NAMES = Users("peers_names", b"name")

_ORDERS = """
CREATE STREAM {name} (customer STRING KEY, id BIGINT, amount INT, name STRING, price DOUBLE)
  WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON', PARTITIONS=4);
"""
_USERS = """
CREATE TABLE {name} (id STRING PRIMARY KEY, name STRING, region STRING)
  WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON', PARTITIONS=4);
"""
DECLARED = {
    **{
        each.topic: _ORDERS.format(name=each.topic)
        for each in (FEW, MANY, SPREAD, SLOW, *MORE.values())
    },
    PAYMENTS.topic: """
CREATE STREAM peers_payments (customer STRING KEY, paid BIGINT)
  WITH (KAFKA_TOPIC='peers_payments', VALUE_FORMAT='JSON', PARTITIONS=4);
""",
    **{each.topic: _USERS.format(name=each.topic) for each in (USERS, NAMES)},
}

_FILTER = """
CREATE STREAM {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT customer, id, amount, UCASE(name) AS label FROM {left} WHERE amount > 10;
"""
_COUNT = """
CREATE TABLE {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT customer, COUNT(*) AS c, SUM(amount) AS s FROM {left} GROUP BY customer;
"""
_TABLE_JOIN = """
CREATE STREAM {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT o.customer AS customer, o.id AS id, o.amount AS amount, u.name AS name, u.region AS region
  FROM {left} o JOIN {right} u ON o.customer = u.id;
"""
_MOVED_FILTER = """
CREATE STREAM {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT name, id, amount, UCASE(name) AS label FROM {left} WHERE amount > 10 PARTITION BY name;
"""
_MOVED_TABLE_JOIN = """
CREATE STREAM {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT u.id AS customer, o.id AS id, o.amount AS amount, u.name AS name, u.region AS region
  FROM {left} o JOIN {right} u ON o.name = u.id;
"""
_WINDOWS = """
CREATE TABLE {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT customer, COUNT(*) AS c FROM {left}
  WINDOW TUMBLING (SIZE 1 SECOND, GRACE PERIOD 24 HOURS) GROUP BY customer;
"""
_STREAM_JOIN = """
CREATE STREAM {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT o.customer AS customer, o.id AS id, o.amount AS amount, p.paid AS paid
  FROM {left} o JOIN {right} p WITHIN 10 SECONDS GRACE PERIOD 10 SECONDS
  ON o.customer = p.customer;
"""
_SESSIONS = """
CREATE TABLE {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT customer, COUNT(*) AS c FROM {left}
  WINDOW SESSION (10 SECONDS, GRACE PERIOD 10 SECONDS) GROUP BY customer;
"""


@dataclass(frozen=True)
class Workload:
    """One query of both sides; ``coalesces`` if it may also emit one change per key and batch."""

    name: str
    about: str
    shape: str
    statement: str
    left: Orders
    check: Callable[[Outputs], None]
    right: Payments | Users | None = None
    coalesces: bool = False

    @property
    def kind(self) -> str:
        """What the statement creates."""
        return self.statement.split()[1]

    @property
    def inputs(self) -> tuple[Orders | Payments | Users, ...]:
        """The topics it reads."""
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def streams(self) -> int:
        """How many of them hold as many records as the round has."""
        return sum(not isinstance(each, Users) for each in self.inputs)


WORKLOADS = (
    Workload("W1", "filter, project", "filter", _FILTER, FEW, lambda o: o.filtered(FEW)),
    Workload(
        "W2", "COUNT, SUM, 10k keys", "count", _COUNT, FEW, lambda o: o.counted(FEW), coalesces=True
    ),
    Workload(
        "W3",
        "COUNT, SUM, 600k keys",
        "count",
        _COUNT,
        MANY,
        lambda o: o.counted(MANY),
        coalesces=True,
    ),
    Workload(
        "W4",
        "stream-table join",
        "table-join",
        _TABLE_JOIN,
        FEW,
        lambda o: o.joined_to_table(FEW),
        right=USERS,
    ),
    Workload(
        "W5",
        "windowed COUNT, 3 windows",
        "windows",
        _WINDOWS,
        FEW,
        lambda o: o.in_windows(FEW),
        coalesces=True,
    ),
    Workload(
        "W5S",
        "windowed COUNT, 100 windows",
        "windows",
        _WINDOWS,
        SPREAD,
        lambda o: o.in_windows(SPREAD),
        coalesces=True,
    ),
    Workload(
        "W7",
        "stream-stream join",
        "stream-join",
        _STREAM_JOIN,
        SLOW,
        lambda o: o.joined(SLOW, PAYMENTS),
        right=PAYMENTS,
    ),
    Workload(
        "W8",
        "session COUNT",
        "sessions",
        _SESSIONS,
        SLOW,
        lambda o: o.in_sessions(SLOW),
        coalesces=True,
    ),
    Workload(
        "W9",
        "filter, project, PARTITION BY",
        "moved-filter",
        _MOVED_FILTER,
        SLOW,
        lambda o: o.filtered(SLOW),
    ),
    Workload(
        "W10",
        "stream-table join on another key",
        "moved-table-join",
        _MOVED_TABLE_JOIN,
        SLOW,
        lambda o: o.joined_to_table(SLOW),
        right=NAMES,
    ),
)
BY_KEYS = tuple(
    Workload(
        f"K{name}",
        f"COUNT, SUM, {name} keys",
        "count",
        _COUNT,
        orders,
        partial(Outputs.counted, orders=orders),
        coalesces=True,
    )
    for name, orders in MORE.items()
)
BY_NAME = {workload.name: workload for workload in (*WORKLOADS, *BY_KEYS)}
