"""A service in memory whose states lie in pages, and everything around it as frozen text."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from ksql.core.query_version import QueryVersion
from ksql.core.types.model import SqlType
from ksql.exec.memory.driver import MemoryRunner
from ksql.spark.task.pages import PagedStore
from ksql.sql.plan.codec import loads
from ksql.sql.plan.explain import explain
from tests.stored.samples import forms
from tests.unit.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.sql.catalog.catalog import Catalog

SCRIPT = """
CREATE TYPE PLACE AS STRUCT<CITY STRING, ZIP INT>;
CREATE STREAM S (K STRING KEY, I INT, B BIGINT, D DOUBLE, X DECIMAL(9,2), T STRING, O BOOLEAN,
  A ARRAY<INT>, M MAP<STRING, INT>, R PLACE, TS TIMESTAMP, H BYTES HEADER('h'))
  WITH (KAFKA_TOPIC='s', PARTITIONS=1, VALUE_FORMAT='JSON', TIMESTAMP='TS');
CREATE STREAM L (K STRING KEY, T STRING, U STRING) WITH (KAFKA_TOPIC='l', PARTITIONS=1,
  VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='TAB', TIMESTAMP='U', TIMESTAMP_FORMAT='yyyy');
CREATE TABLE P (K STRING PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='p', PARTITIONS=1);
CREATE STREAM Q1 WITH (VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='|') AS SELECT K, I - B AS C1,
  -D AS C2, X * 2 AS C3, T + 'x' AS C4, I % 3 AS C5, D / 2 AS C6, I + D AS C7, LCASE(T) AS C8
  FROM S WHERE I >= 1 AND T LIKE 'a!%%' ESCAPE '!' OR NOT O AND B IN (1, 2, I) OR D IS NULL;
CREATE STREAM Q2 AS SELECT T, K, A[1] AS C1, M['a'] AS C2, R->CITY AS C3, CAST(I AS STRING) AS C4,
  ARRAY[I, 2] AS C5, MAP('k' := I) AS C6, STRUCT(N := I, `o'p` := T) AS C7,
  TRANSFORM(A, e => e + 1) AS C8, CASE WHEN I = 1 THEN 'a' ELSE T END AS C9,
  CASE I WHEN 1 THEN 2 END AS C10, ABS(I) BETWEEN 1 AND 3 AS C11, T IS DISTINCT FROM 'x' AS C12, H
  FROM S PARTITION BY T;
CREATE STREAM Q3 AS SELECT K, EXPLODE(A) AS E FROM S;
CREATE TABLE Q4 AS SELECT T, COUNT(*) AS C, TOPK(I, 2) AS TOP, SUM(X) AS SU, AVG(D) AS AV,
  LATEST_BY_OFFSET(R) AS LA, COLLECT_SET(I) AS CO, HISTOGRAM(K) AS HI, MAX(B) AS MA
  FROM S GROUP BY T HAVING COUNT(*) > 0;
CREATE TABLE Q5 AS SELECT T, COUNT(*) AS C FROM S
  WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS, GRACE PERIOD 1 MINUTE) GROUP BY T;
CREATE STREAM Q6 AS SELECT S.K, S.I, P.N FROM S LEFT JOIN P ON S.K = P.K;
CREATE TABLE Q7 AS SELECT N, COUNT(*) AS C FROM P GROUP BY N;
CREATE STREAM Q8 AS SELECT * FROM L;
INSERT INTO Q8 SELECT K, T, U FROM L;
CREATE SOURCE TABLE V (K STRING PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='p');
CREATE TABLE Q9 AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;
CREATE OR REPLACE TABLE Q9 AS SELECT K, COUNT(*) AS C, SUM(I) AS SU FROM S WHERE I > 0 GROUP BY K;
CREATE STREAM GONE AS SELECT K, I FROM S;
CREATE STREAM KEPT AS SELECT K, I FROM S;
"""
LATER = """
PAUSE {rests};
TERMINATE {gone};
DROP STREAM GONE DELETE TOPIC;
DROP TYPE PLACE;
"""
BASE_MS = 1_600_000_000_000


def inputs() -> list[tuple[str, str | None, Any, int]]:
    """Topic, key, value and time of the records that the queries read."""
    events: list[tuple[str, str | None, Any, int]] = [
        ("p", "k1", {"N": 1}, BASE_MS),
        ("p", "k2", {"N": 1}, BASE_MS + 1),
    ]
    for n in range(12):
        time = BASE_MS + 3_000 * n
        value = {
            "I": n, "B": n % 4, "D": None if n == 7 else n / 4, "X": n + 0.25, "T": f"a%{n % 3}",
            "O": n % 2 == 0, "A": list(range(n % 3)), "M": {"a": n}, "TS": time,
            "R": {"CITY": f"c{n}", "ZIP": n},
        }  # fmt: skip
        events.append(("s", f"k{n % 4}", value, time))
        events.append(("l", f"k{n}", f"t{n}\t{2000 + n}", time))
    events[14:14] = [("p", "k1", {"N": 2}, BASE_MS + 20_000), ("p", "k2", None, BASE_MS + 20_001)]
    return events


class Pages:
    """A map of bytes to bytes in memory."""

    def __init__(self, entries: dict[bytes, bytes] | None = None) -> None:
        self.entries = dict(entries or {})

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.entries.get(key) for key in keys]

    def put_many(self, entries: Sequence[tuple[bytes, bytes]]) -> None:
        self.entries.update(entries)

    def remove_many(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self.entries.pop(key, None)


class PagedRunner(MemoryRunner):
    """Hosts queries whose stages keep their states in pages, written after every record."""

    def start(self, query: Any) -> None:
        new = query.version not in self._resting
        super().start(query)
        running = self.running[query.version]
        if new:
            self.pages = getattr(self, "pages", {})
            backends = [Pages() for _ in running.stores]
            self.pages[query.id] = backends
            running.stores = [PagedStore(backend) for backend in backends]

    def adopt(self, query_id: Any, pages: list[Pages], positions: dict[str, int]) -> None:
        """Go on with states and positions that somebody else has left."""
        running = self.running[QueryVersion(query_id)]
        assert len(pages) == len(running.stores)
        self.pages[query_id] = pages
        running.stores = [PagedStore(each) for each in pages]
        running.positions = dict(positions)

    def _process(self, query: Any, record: Any, topic: str, offset: int) -> None:
        super()._process(query, record, topic, offset)
        for store in query.stores:
            store.flush()


def feed(world: World, records: list[tuple[str, str | None, Any, int]]) -> None:
    """Append records one by one and let all queries run."""
    for topic, key, value, time in records:
        if topic == "l":
            world.topics.append("l", key.encode(), value.encode(), time)
            world.drain()
        else:
            world.feed(topic, (key, value, time))


def catalog_text(catalog: Catalog) -> str:
    """All that a catalog knows, line by line, under names of its own."""
    lines = []
    for source in catalog.sources.values():
        lines.append(f"{source.kind} {source.name} over {source.topic}: {source.schema}")
        lines += _described(source, "name", "kind", "topic")
    for query in catalog.queries.values():
        lines.append(f"{query.kind} {query.version.name}")
        first = ("cut_over",) if query.cut_over is None else ()
        lines += _described(query, "plan", "id", "kind", "version", *first)
        lines += [f"  {line}" for line in explain(loads(query.plan).sink).splitlines()]
    lines += [f"type {name}: {type_}" for name, type_ in catalog.types.items()]
    return "\n".join(lines) + "\n"


def _described(value: Any, *without: str) -> list[str]:
    form, _ = forms()[type(value)]
    return [
        f"  {key}: {_shown(getattr(value, name))}"
        for key, name in form.keys.items()
        if key not in without
    ]


def _shown(value: Any) -> str:
    """Values by their stored keys, without the names of their classes."""
    form = forms().get(type(value))
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, Enum):
        return str(value.value)
    if form is not None and not isinstance(value, SqlType):
        keys = form[0].keys.items()
        return ", ".join(f"{key}={_shown(getattr(value, name))}" for key, name in keys)
    return str(value)
