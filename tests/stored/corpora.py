"""The services whose commands, records and states are frozen.

What was released is never made anew: a node of the plan that came later has a service of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.stored.memory import BASE_MS, SCRIPT, inputs

V1: Final = Path(__file__).parent / "v1"
V2: Final = Path(__file__).parent / "v2"
Input = tuple[str, str | None, Any, int]
"""Topic, key, value and time of a record."""


@dataclass(frozen=True)
class Corpus:
    """A service: its statements, its inputs, and how many of them the frozen states have seen.

    Its commands follow those of the service ``after``, if there is one, as that one has them.
    """

    place: Path
    script: str
    inputs: tuple[Input, ...]
    half: int
    after: Path | None = None


FIRST: Final = Corpus(V1, SCRIPT, tuple(inputs()), 13)
_STREAMS: Final = """
CREATE STREAM A (K STRING KEY, N INT) WITH (KAFKA_TOPIC='a', PARTITIONS=1, VALUE_FORMAT='JSON');
CREATE STREAM B (K STRING KEY, N INT) WITH (KAFKA_TOPIC='b', PARTITIONS=1, VALUE_FORMAT='JSON');
CREATE TABLE T (K STRING PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1,
  VALUE_FORMAT='JSON');
CREATE STREAM J1 AS SELECT A.K, A.N AS AN, B.N AS BN FROM A JOIN B WITHIN 9 SECONDS ON A.K = B.K;
CREATE STREAM J2 AS SELECT ROWKEY AS K, A.N AS AN, B.N AS BN FROM A FULL JOIN B
  WITHIN (2 SECONDS, 5 SECONDS) GRACE PERIOD 1 SECOND ON A.K = B.K;
CREATE STREAM J3 AS SELECT B.K, A.N AS AN, B.N AS BN, T.N AS TN FROM A RIGHT JOIN B
  WITHIN 4 SECONDS ON A.K = B.K LEFT JOIN T ON B.K = T.K;
CREATE STREAM J4 AS SELECT A.K, A.N AS AN, B.N AS BN, T.N AS TN FROM A LEFT JOIN T ON A.K = T.K
  LEFT JOIN B WITHIN 3 SECONDS GRACE PERIOD 0 SECONDS ON A.K = B.K;
"""


def _stream_inputs() -> tuple[Input, ...]:
    inputs: list[Input] = [("t", "k0", {"N": 1}, BASE_MS), ("t", "k1", {"N": 2}, BASE_MS)]
    for n in range(30):
        time = BASE_MS + 1_700 * n - (6_000 if n % 7 == 3 else 0)
        inputs.append(("ab"[n % 3 == 1], f"k{n % 4}", {"N": n}, time))
    inputs += [("a", None, {"N": 90}, BASE_MS + 60_000), ("b", None, {"N": 91}, BASE_MS + 60_001)]
    return (*inputs, ("b", "k9", {"N": 92}, BASE_MS + 90_000))


_WINDOWS: Final = """
CREATE STREAM S (K STRING KEY, N INT, B STRING) WITH (KAFKA_TOPIC='s', PARTITIONS=1,
  VALUE_FORMAT='JSON');
CREATE TABLE W1 AS SELECT K, COUNT(*) AS C, COLLECT_LIST(N) AS L, AVG(N) AS A FROM S
  WINDOW SESSION (4 SECONDS, GRACE PERIOD 9 SECONDS) GROUP BY K;
CREATE TABLE W2 AS SELECT B, SUM(N) AS T, HISTOGRAM(K) AS H FROM S
  WINDOW SESSION (2 SECONDS) GROUP BY B HAVING COUNT(*) > 1;
CREATE TABLE W3 AS SELECT K, COUNT(*) AS C, TOPK(N, 2) AS L FROM S
  WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS, RETENTION 1 HOUR, GRACE PERIOD 3 SECONDS)
  GROUP BY K EMIT FINAL;
CREATE TABLE W4 AS SELECT K, COUNT(*) AS C, MIN(N) AS M FROM S
  WINDOW SESSION (3 SECONDS, RETENTION 1 HOUR) GROUP BY K EMIT FINAL;
"""


def _window_inputs() -> tuple[Input, ...]:
    inputs: list[Input] = []
    for n in range(40):
        time = BASE_MS + 1_300 * n - (5_000 if n % 7 == 3 else 0)
        inputs.append(("s", f"k{n % 3}", {"N": n, "B": "xyz"[n % 5 % 3]}, time))
    return (*inputs, ("s", "k9", {"N": 90, "B": None}, BASE_MS + 600_000))


_TABLES: Final = """
CREATE TABLE A (K STRING PRIMARY KEY, N INT, F STRING) WITH (KAFKA_TOPIC='a', PARTITIONS=1,
  VALUE_FORMAT='JSON');
CREATE TABLE B (K STRING PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='b', PARTITIONS=1,
  VALUE_FORMAT='JSON');
CREATE TABLE C (K STRING PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='c', PARTITIONS=1,
  VALUE_FORMAT='JSON');
CREATE TABLE P1 AS SELECT A.K, A.N AS AN, B.N AS BN FROM A JOIN B ON A.K = B.K;
CREATE TABLE P2 AS SELECT ROWKEY AS K, A.N AS AN, B.N AS BN FROM A FULL JOIN B ON A.K = B.K;
CREATE TABLE P3 AS SELECT B.K, A.N AS AN, B.N AS BN, C.N AS CN FROM A RIGHT JOIN B ON A.K = B.K
  LEFT JOIN C ON B.K = C.K;
CREATE TABLE F1 AS SELECT A.K, A.N AS AN, B.N AS BN FROM A JOIN B ON A.F = B.K;
CREATE TABLE F2 AS SELECT A.K, A.N AS AN, B.N AS BN, C.N AS CN FROM A LEFT JOIN B ON A.F = B.K
  JOIN C ON A.K = C.K;
CREATE TABLE F3 AS SELECT B.N AS BN, COUNT(*) AS C FROM A LEFT JOIN B ON A.F = B.K GROUP BY B.N;
"""


def _table_inputs() -> tuple[Input, ...]:
    inputs: list[Input] = []
    for n in range(36):
        topic, key = "abc"[n % 3], f"k{n % 5}"
        value = None if n % 8 == 7 else {"N": n, "F": None if n % 9 == 3 else f"k{n % 4}"}
        inputs.append((topic, key, value, BASE_MS + 100 * n - (700 if n % 5 == 1 else 0)))
    return tuple(inputs)


_STORES: Final = """
CREATE TABLE P (K STRING PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='p', PARTITIONS=1,
  VALUE_FORMAT='JSON');
CREATE SOURCE TABLE V (K STRING PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='p', VALUE_FORMAT='JSON',
  STORE_TYPE='IN_MEMORY');
CREATE TABLE D WITH (STORE_TYPE='rocksDB') AS SELECT K, N + 1 AS M FROM P;
CREATE TABLE X WITH (STORE_TYPE='TXN_ROCKSDB') AS SELECT K, N * 2 AS M FROM P;
CREATE OR REPLACE TABLE X WITH (STORE_TYPE='in_memory') AS SELECT K, N * 2 AS M FROM P;
"""


def _store_inputs() -> tuple[Input, ...]:
    return tuple(("p", f"k{n % 5}", {"N": n}, BASE_MS + 100 * n) for n in range(12))


_LANES: Final = """
CREATE STREAM A (K STRING KEY, N INT, G STRING) WITH (KAFKA_TOPIC='a', PARTITIONS=1,
  VALUE_FORMAT='JSON');
CREATE STREAM B (K STRING KEY, N INT, G STRING) WITH (KAFKA_TOPIC='b', PARTITIONS=1,
  VALUE_FORMAT='JSON');
CREATE TABLE T (K STRING PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1,
  VALUE_FORMAT='JSON');
CREATE TABLE L1 AS SELECT K, COUNT(*) AS C FROM A
  WINDOW TUMBLING (SIZE 5 SECONDS, GRACE PERIOD 9 SECONDS) GROUP BY K;
CREATE TABLE L2 AS SELECT G, SUM(N) AS S FROM A WINDOW SESSION (3 SECONDS) GROUP BY G EMIT FINAL;
CREATE TABLE L3 AS SELECT K, SUM(N) AS S FROM A
  WINDOW TUMBLING (SIZE 5 SECONDS, GRACE PERIOD 2 SECONDS) GROUP BY K EMIT FINAL;
CREATE STREAM L4 AS SELECT ROWKEY AS K, A.N AS AN, B.N AS BN FROM A FULL JOIN B
  WITHIN 3 SECONDS GRACE PERIOD 1 SECOND ON A.K = B.G;
CREATE STREAM L5 AS SELECT A.K, A.N AS AN, B.N AS BN, T.N AS TN FROM A LEFT JOIN B
  WITHIN 4 SECONDS ON A.K = B.K LEFT JOIN T ON A.K = T.K;
"""


def _lane_inputs() -> tuple[Input, ...]:
    inputs: list[Input] = [("t", "k0", {"N": 1}, BASE_MS), ("t", "k1", {"N": 2}, BASE_MS)]
    for n in range(36):
        time = BASE_MS + 1_100 * n - (4_000 if n % 7 == 3 else 0)
        row = {"N": n, "G": None if n % 11 == 5 else f"k{n % 5 % 3}"}
        inputs.append(("ab"[n % 3 == 1], f"k{n % 4}", row, time))
    return (*inputs, ("a", None, {"N": 90, "G": "k0"}, BASE_MS + 60_000))


_GATHERED: Final = """
CREATE OR REPLACE TABLE W4 AS SELECT K, COUNT(*) AS C, MIN(N) AS M, MAX(N) AS X FROM S
  WINDOW SESSION (3 SECONDS, RETENTION 1 HOUR) GROUP BY K EMIT FINAL;
CREATE STREAM O3 (K STRING KEY, C BIGINT) WITH (KAFKA_TOPIC='W3', VALUE_FORMAT='JSON',
  WINDOW_TYPE='HOPPING', WINDOW_SIZE='10 SECONDS');
CREATE TABLE G1 AS SELECT K, COUNT(*) AS C FROM S
  WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 3 SECONDS) GROUP BY K;
CREATE TABLE G2 AS SELECT B, SUM(N) AS T FROM S WINDOW SESSION (2 SECONDS) GROUP BY B EMIT FINAL;
CREATE STREAM O1 (K STRING KEY, C BIGINT) WITH (KAFKA_TOPIC='G1', VALUE_FORMAT='JSON',
  WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 SECONDS');
CREATE STREAM G3 AS SELECT O3.K, O3.C AS C3, O1.C AS C1 FROM O3 JOIN O1 WITHIN 9 SECONDS
  ON O3.K = O1.K;
CREATE TABLE G4 AS SELECT K, COUNT(*) AS C, SUM(C) AS U FROM O3
  WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 1 MINUTE) GROUP BY K;
INSERT INTO O1 SELECT K, C FROM O3;
CREATE SOURCE TABLE G5 (K STRING PRIMARY KEY, C BIGINT) WITH (KAFKA_TOPIC='G1',
  VALUE_FORMAT='JSON', WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 SECONDS');
"""

_GROWN: Final = """
CREATE STREAM A (K STRING KEY, N INT) WITH (KAFKA_TOPIC='a', PARTITIONS=1, VALUE_FORMAT='JSON');
CREATE TABLE T (K STRING PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1,
  VALUE_FORMAT='JSON');
CREATE STREAM J1 AS SELECT A.K, A.N AS AN, T.N AS TN FROM A JOIN T ON A.K = T.K;
ALTER TABLE T ADD COLUMN M INT;
CREATE OR REPLACE STREAM J1 AS SELECT A.K, A.N AS AN, T.N AS TN, T.M AS TM FROM A JOIN T
  ON A.K = T.K;
"""


def _grown_inputs() -> tuple[Input, ...]:
    return tuple(
        ("at"[n % 2], f"k{n % 3}", {"N": n, "M": n + 1}, BASE_MS + 100 * n) for n in range(20)
    )


_EXPIRING: Final = """
CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, VALUE_FORMAT='JSON');
CREATE TABLE E1 WITH (RETENTION_MS=4000) AS SELECT K, COUNT(*) AS C, SUM(N) AS T FROM S GROUP BY K;
CREATE TABLE E2 AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;
CREATE OR REPLACE TABLE E2 WITH (RETENTION_MS=2500) AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;
CREATE TABLE E3 WITH (RETENTION_MS=1000) AS SELECT N, COUNT(*) AS C FROM S GROUP BY N;
CREATE OR REPLACE TABLE E3 AS SELECT N, COUNT(*) AS C FROM S GROUP BY N;
"""


def _expiring_inputs() -> tuple[Input, ...]:
    inputs: list[Input] = []
    for n in range(30):
        time = BASE_MS + 900 * n - (4_500 if n % 7 == 3 else 0)
        inputs.append(("s", f"k{n % 9 % 4}", {"N": n % 5}, time))
    return (*inputs, ("s", "k9", {"N": 90}, BASE_MS + 60_000))


CORPORA: Final = {
    "first": FIRST,
    "streams": Corpus(V1 / "streams", _STREAMS, _stream_inputs(), 20),
    "windows": Corpus(V1 / "windows", _WINDOWS, _window_inputs(), 23),
    "tables": Corpus(V1 / "tables", _TABLES, _table_inputs(), 22),
    "stores": Corpus(V1 / "stores", _STORES, _store_inputs(), 6),
    "lanes": Corpus(V2 / "lanes", _LANES, _lane_inputs(), 21),
    "gathered": Corpus(V2 / "gathered", _GATHERED, _window_inputs(), 23, V1 / "windows"),
    "expiring": Corpus(V2 / "expiring", _EXPIRING, _expiring_inputs(), 17),
    "grown": Corpus(V2 / "grown", _GROWN, _grown_inputs(), 10),
}
