"""Push queries of every shape, over HTTP: their rows, and the bound of their state."""

from __future__ import annotations

import pytest

from tests.kafka.records import create_topic, produce, unique
from tests.kafka.servers import Hosted

SETTINGS = {"auto.offset.reset": "earliest", "cache.max.bytes.buffering": "0"}
WITHIN = "WITHIN 10 SECONDS"
SHAPES: dict[str, list[list[object]]] = {
    "SELECT K, N FROM {s} WHERE N > 1": [["a", 2], ["b", 3], ["a", 4]],
    "SELECT N, K FROM {s} PARTITION BY N": [[1, "a"], [2, "a"], [3, "b"], [4, "a"]],
    "SELECT K, EXPLODE(ARRAY[N, -N]) AS E FROM {s} WHERE K = 'b'": [["b", 3], ["b", -3]],
    "SELECT ID, V FROM {t}": [["a", 1], ["b", 2]],
    "SELECT K, COUNT(*) AS C FROM {s} GROUP BY K": [["a", 1], ["a", 2], ["b", 1], ["a", 3]],
    "SELECT K, WINDOWSTART, COUNT(*) AS C FROM {s} WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY K": [
        ["a", 0, 1],
        ["a", 0, 2],
        ["b", 10_000, 1],
        ["a", 40_000, 1],
    ],
    "SELECT K, WINDOWSTART, SUM(N) AS M FROM {s} "
    "WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS) GROUP BY K": [
        ["a", 0, 1],
        ["a", 0, 3],
        ["b", 5_000, 3],
        ["b", 10_000, 3],
        ["a", 35_000, 4],
        ["a", 40_000, 4],
    ],
    "SELECT K, WINDOWSTART, WINDOWEND, COUNT(*) AS C FROM {s} WINDOW SESSION (5 SECONDS) "
    "GROUP BY K": [
        ["a", 1_000, 1_000, 1],  # its deletion is not shown, and does not count
        ["a", 1_000, 2_000, 2],
        ["b", 13_000, 13_000, 1],
        ["a", 40_000, 40_000, 1],
    ],
    "SELECT K, WINDOWSTART, COUNT(*) AS C FROM {s} "
    "WINDOW TUMBLING (SIZE 10 SECONDS, RETENTION 1 DAYS, GRACE PERIOD 0 SECONDS) GROUP BY K "
    "EMIT FINAL": [
        ["a", 0, 2],
        ["b", 10_000, 1],
    ],
    "SELECT K, WINDOWSTART, WINDOWEND, COUNT(*) AS C FROM {s} "
    "WINDOW SESSION (5 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY K EMIT FINAL": [
        ["a", 1_000, 2_000, 2],
        ["b", 13_000, 13_000, 1],
    ],
    f"SELECT L.K, L.N, R.N FROM {{s}} L JOIN {{r}} R {WITHIN} ON L.K = R.K": [
        ["a", 1, 7],
        ["a", 2, 7],
    ],
    f"SELECT L.K, L.N, R.N FROM {{s}} L LEFT JOIN {{r}} R {WITHIN} GRACE PERIOD 0 SECONDS "
    "ON L.K = R.K": [["a", 1, 7], ["a", 2, 7], ["b", 3, None]],
    f"SELECT ROWKEY, L.N, R.N FROM {{s}} L FULL JOIN {{r}} R {WITHIN} GRACE PERIOD 0 SECONDS "
    "ON L.K = R.K": [["a", 1, 7], ["a", 2, 7], ["b", 3, None]],
    "SELECT S.K, N, V FROM {s} S JOIN {t} T ON S.K = T.ID": [
        ["a", 1, 1],
        ["a", 2, 1],
        ["b", 3, 2],
        ["a", 4, 1],
    ],
    "SELECT T.ID, V, W FROM {t} T JOIN {u} U ON T.ID = U.ID": [["a", 1, 10], ["b", 2, 20]],
    "SELECT ROWKEY, V, W FROM {t} T FULL JOIN {u} U ON T.ID = U.ID": [
        ["a", 1, None],
        ["b", 2, None],
        ["a", 1, 10],
        ["b", 2, 20],
    ],
    "SELECT U.ID, W, V FROM {u} U JOIN {t} T ON U.REF = T.ID": [["a", 10, 2], ["b", 20, 1]],
    f"SELECT L.K, L.N, R.N, V FROM {{s}} L JOIN {{r}} R {WITHIN} ON L.K = R.K "
    "JOIN {t} T ON L.K = T.ID": [["a", 1, 7, 1], ["a", 2, 7, 1]],
    "SELECT V, COUNT(*) AS C FROM {s} S JOIN {t} T ON S.K = T.ID GROUP BY V": [
        [1, 1],
        [1, 2],
        [2, 1],
        [1, 3],
    ],
}
STATELESS = 3
LEAST_BOUND = 1_000_000
DECLARED = {
    "s": "STREAM|(K STRING KEY, N INT, MS BIGINT)",
    "r": "STREAM|(K STRING KEY, N INT, MS BIGINT)",
    "t": "TABLE|(ID STRING PRIMARY KEY, V INT, MS BIGINT)",
    "u": "TABLE|(ID STRING PRIMARY KEY, REF STRING, W INT, MS BIGINT)",
}
RECORDS = {
    "t": [("a", {"V": 1, "MS": 0}), ("b", {"V": 2, "MS": 0})],
    "u": [("a", {"REF": "b", "W": 10, "MS": 100}), ("b", {"REF": "a", "W": 20, "MS": 100})],
    "s": [
        ("a", {"N": 1, "MS": 1_000}),
        ("a", {"N": 2, "MS": 2_000}),
        ("b", {"N": 3, "MS": 13_000}),
        ("a", {"N": 4, "MS": 40_000}),
    ],
    "r": [("a", {"N": 7, "MS": 1_500}), ("b", {"N": 8, "MS": 30_000})],
}


def declared(server, records):
    """Two streams and two tables with these records, by the letters of the queries above."""
    names = {letter: unique("push").upper() for letter in DECLARED}
    for letter, text in DECLARED.items():
        kind, columns = text.split("|")
        name = names[letter]
        create_topic(server.bootstrap, name)
        server.http.ksql(
            f"CREATE {kind} {name} {columns} "
            f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON', TIMESTAMP='MS');"
        )
        produce(server.bootstrap, name, records[letter])
    return names


@pytest.fixture(scope="module")
def names(server):
    """Those with few records."""
    return declared(server, RECORDS)


@pytest.fixture(scope="module")
def bounded(broker, runtime, tmp_path_factory):
    """A service with the least bound that there is."""
    hosted = Hosted(
        broker.bootstrap,
        runtime,
        tmp_path_factory.mktemp("bounded"),
        unique("bounded") + "_",
        ksql__query__push__state__max__bytes=str(LEAST_BOUND),
    )
    try:
        hosted.start()
        yield hosted
    finally:
        hosted.stop()


@pytest.fixture(scope="module")
def many(bounded):
    """Those with more keys than that bound has room for, all at one time."""
    keys = [f"{n:0200}" for n in range(3 * LEAST_BOUND // len(DECLARED) // 200)]
    value = {"N": 1, "V": 1, "W": 1, "MS": 1_000}
    records = [(key, value | {"REF": key}) for key in keys]
    return declared(bounded, dict.fromkeys(DECLARED, records))


def pushed(text, names, limit):
    emit = "" if "FINAL" in text else " EMIT CHANGES"
    return f"{text.format(**names)}{emit} LIMIT {limit};"


@pytest.mark.parametrize("text", SHAPES)
def test_rows(http, names, text):
    expected = SHAPES[text]
    rows = http.rows(pushed(text, names, len(expected)), SETTINGS)
    assert rows == expected


@pytest.mark.parametrize("text", list(SHAPES)[STATELESS:])
def test_its_state_has_a_bound(bounded, many, text):
    with bounded.http.stream(pushed(text, many, 1_000_000), SETTINGS) as lines:
        *_, last = lines
    assert "the query's state has grown beyond" in last["message"]
    assert "CREATE TABLE .. AS SELECT" in last["message"]
