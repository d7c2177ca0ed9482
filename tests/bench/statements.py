"""The records and statements of all workloads."""

from __future__ import annotations

AMOUNTS = 1000
LEAST = 10
"""Orders of at most this amount are filtered out."""

SOURCE = """
CREATE STREAM {name} (customer STRING KEY, id BIGINT, amount INT, name STRING, price DOUBLE)
  WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='{format}', PARTITIONS=4);
"""

TABLE = """
CREATE TABLE {name} (customer STRING PRIMARY KEY, id BIGINT, amount INT, name STRING, price DOUBLE)
  WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='{format}', PARTITIONS=4);
"""

USERS = """
CREATE TABLE users (id STRING PRIMARY KEY, name STRING, region STRING)
  WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON', PARTITIONS=4);
"""

TABLE_JOIN = """
CREATE STREAM {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT o.customer AS customer, o.id AS id, o.amount AS amount, u.name AS name, u.region AS region
  FROM {source} o JOIN users u ON o.customer = u.id;
"""

MOVED_TABLE_JOIN = """
CREATE STREAM {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT u.id AS customer, o.id AS id, o.amount AS amount, u.name AS name, u.region AS region
  FROM {source} o JOIN users u ON o.name = u.id;
"""

BY_CUSTOMER = """
CREATE TABLE {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT customer, COUNT(*) AS c, SUM(amount) AS s FROM {source} GROUP BY customer;
"""

REGROUPED = """
CREATE TABLE {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT amount, COUNT(*) AS orders, SUM(id) AS total FROM {source}
  GROUP BY amount;
"""

STATELESS = """
CREATE STREAM {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT customer, id, amount, UCASE(name) AS label FROM {source}
  WHERE amount > 10;
"""

MOVED = """
CREATE STREAM {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT name, id, amount, UCASE(name) AS label FROM {source}
  WHERE amount > 10 PARTITION BY name;
"""

COUNT = """
CREATE TABLE {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT id, COUNT(*) AS orders, SUM(amount) AS total FROM {source}
  GROUP BY id;
"""

WINDOWS = """
CREATE TABLE {name} WITH (KAFKA_TOPIC='{name}') AS
  SELECT customer, COUNT(*) AS orders FROM {source}
  WINDOW TUMBLING (SIZE 1 SECOND, GRACE PERIOD 24 HOURS) GROUP BY customer;
"""

_EXPRESSIONS = (
    "id + {0}",
    "UCASE(name)",
    "price * {0}",
    "CONCAT(name, '-{0}')",
    "amount % ({0} + 1)",
    "CASE WHEN amount > {0}00 THEN 'much' ELSE 'little' END",
    "CAST(amount AS STRING)",
)


def projection(width: int) -> str:
    """A statement that computes so many columns, ``E0`` first."""
    chosen = (_EXPRESSIONS[n % len(_EXPRESSIONS)].format(n) for n in range(width))
    columns = ", ".join(f"{text} AS e{n}" for n, text in enumerate(chosen))
    return (
        "CREATE STREAM {name} WITH (KAFKA_TOPIC='{name}') AS "
        f"SELECT customer, {columns} FROM {{source}};"
    )


def order_row(number: int, customer: int) -> tuple[int, int, str, float]:
    """The value of an order as a row of the stream."""
    return customer, number % AMOUNTS, f"name{customer}", number % 9973 / 100


def order(number: int, customer: int) -> tuple[bytes, bytes]:
    """Key and value of an order; amounts go round, so their sums are known."""
    _, amount, _, price = order_row(number, customer)
    value = f'{{"ID":{customer},"AMOUNT":{amount},"NAME":"name{customer}","PRICE":{price:.2f}}}'
    return str(customer).encode(), value.encode()
