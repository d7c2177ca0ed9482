"""The fused loop against the road step by step: the same records, the same log."""

from __future__ import annotations

import json
import random
from copy import copy

import pytest

from ksql.core.errors import QueryFailed
from ksql.exec.dataflow import exits
from ksql.exec.dataflow.compiled import writing
from ksql.exec.dataflow.program import RawBatch
from ksql.formats.schema_registry import MemoryRegistry
from ksql.functions.registry import BUILTINS
from tests.examples import examples
from tests.fuzz.mutate import damaged
from tests.unit.exec.operators.support import Log
from tests.unit.world import World

COLUMNS = (
    "B BOOLEAN, I INT, L BIGINT, D DOUBLE, S STRING, Y BYTES, N DECIMAL(8, 3), DA DATE, TI TIME, "
    "TS TIMESTAMP, A ARRAY<STRUCT<X BIGINT, Y ARRAY<STRING>>>, M MAP<STRING, DECIMAL(8, 3)>"
)
SETUP = f"""
CREATE STREAM S (K STRING KEY, {COLUMNS}) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM LONG (K BIGINT KEY, V INT) WITH (KAFKA_TOPIC='long', PARTITIONS=1);
CREATE STREAM WHOLE (K INT KEY, V INT) WITH (KAFKA_TOPIC='whole', PARTITIONS=1);
CREATE STREAM HALF (K DOUBLE KEY, V INT) WITH (KAFKA_TOPIC='half', PARTITIONS=1);
CREATE STREAM RAW (K BYTES KEY, V INT) WITH (KAFKA_TOPIC='raw', PARTITIONS=1);
CREATE STREAM OBJECT (K INT KEY, G STRING KEY, V INT)
  WITH (KAFKA_TOPIC='object', PARTITIONS=1, KEY_FORMAT='JSON');
CREATE STREAM NOKEY (V INT) WITH (KAFKA_TOPIC='nokey', PARTITIONS=1);
CREATE STREAM ALONE (K STRING KEY, V INT)
  WITH (KAFKA_TOPIC='alone', PARTITIONS=1, WRAP_SINGLE_VALUE=false);
CREATE STREAM LINES (K STRING KEY, V INT, W STRING)
  WITH (KAFKA_TOPIC='lines', PARTITIONS=1, VALUE_FORMAT='DELIMITED');
CREATE STREAM TIMED (K STRING KEY, V BIGINT)
  WITH (KAFKA_TOPIC='timed', PARTITIONS=1, TIMESTAMP='V');
CREATE STREAM HEADED (K STRING KEY, V INT, H ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS)
  WITH (KAFKA_TOPIC='headed', PARTITIONS=1);
"""
PLANS = [
    "SELECT * FROM S",
    "SELECT K, I, L + 1 AS L, UCASE(S) AS U FROM S WHERE I > 1",
    "SELECT K, K + 'x' AS KX, D, D AS E, D * I AS DI, 2.5 AS C, 1e-9 AS T, 'a''b' AS Q FROM S",
    "SELECT K, CAST(S AS INT) AS N, CAST(S AS DOUBLE) AS F, I / (L - 1) AS O FROM S",
    "SELECT K, I FROM S WHERE CAST(S AS INT) / I > 0 AND K <> 'b'",
    "SELECT K, ROWTIME AS RT, ROWPARTITION AS P, ROWOFFSET AS O, A, M, Y, N FROM S",
    "SELECT K, CAST(NULL AS DOUBLE) AS Z, CAST(NULL AS INT) AS W FROM S",
    "SELECT S, K, I FROM S PARTITION BY S",
    "SELECT I, L, S FROM S WHERE L IS NOT NULL PARTITION BY I",
    "SELECT K, DA, TI, TS, TRANSFORM(A, X => X->X + 1) AS TX FROM S",
    "SELECT K, V FROM LONG WHERE V > 1",
    "SELECT K, V, K + V AS KV FROM LONG",
    "SELECT K, V FROM WHOLE",
    "SELECT K, V FROM HALF WHERE V > 1",
    "SELECT K, V FROM RAW",
    "SELECT K, G, V FROM OBJECT WHERE K > 1",
    "SELECT V, V + 1 AS W FROM NOKEY WHERE V > 0",
    "SELECT K, V FROM ALONE",
    "SELECT K, V, UCASE(W) AS W FROM LINES",
]
OTHERS = [
    "SELECT K, EXPLODE(ARRAY[V, 7]) AS E FROM LONG",
    "SELECT * FROM TIMED",
    "SELECT K, V, H FROM HEADED",
]
SINKS = {"SELECT K, I, L + 1 AS L, UCASE(S) AS U FROM S WHERE I > 1": "DELIMITED"}
NUMBERS = [
    "1",
    "20",
    "1.0",
    "1.5",
    "1e2",
    "-0",
    "-0.0",
    "0.0",
    "true",
    "null",
    "[]",
    "{}",
    "NaN",
    "01",
    "1.",
    ".5",
    "+1",
    "-1",
    "2147483648",
    "-2147483649",
    "1e-7",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "9007199254740993.0",
    "1e400",
    "-1e400",
    "0.1000000000000000055511151231257827",
    "4.9e-324",
    "123456789012345678901234567890",
    "12345.678",
    "1e7",
]
TEXTS = [
    *('"7"', '"x"', '" 7 "', '"1.50"', '"\\u00e9"', '"\\ud800"', '"\\ud83d\\ude00"', '"a\\u0000b"'),
    *('"\\x41"', '"a\nb"', '"AP8="', '""', '"true"', '"\u00e9"', '"\uffff"', '"2020-01-01"'),
    *('[{"X":1,"Y":["a",null]},null]', '[{"x":1}]', '{"k":1.5}', '{"k":"1"}', '{"k":{}}', "[1]"),
]
NAMES = ("B", "I", "L", "D", "S", "Y", "N", "DA", "TI", "TS", "A", "M", "V", "K", "G")
GOOD = {
    "B": True,
    "I": 7,
    "L": 1 << 40,
    "D": 1.25,
    "S": "12",
    "Y": "AP8=",
    "N": 1.25,
    "V": 3,
    "DA": 19000,
    "TI": 1234,
    "TS": 5,
    "A": [{"X": 1, "Y": ["a"]}],
    "M": {"k": 2.5},
}
WHOLE = [
    *(None, b"", b" ", b"null", b" null ", b"[]", b"1", b'"x"', b"{}", b"{", b"x,y", b'1,"a b"'),
    *(b"1,a,b", b"true", b'{"I":1}}', b'{"I":1} {}', b"\xef\xbb\xbf{}", b'{"i":2,"s":"y"}'),
    *(
        b'{"I":1,"I":2}',
        b'{"I":1,"i":2}',
        b'{"i":3,"I":"x"}',
        b'{"I":5,"X":"\xff"}',
        b'{"S":"\xff"}',
    ),
    *(b'{"I":5,"X":[1,{"Y":2}]}', b'{"I":5,"X":01}', b'{"I":5,"X":NaN}', b'{"I":5,"X":"\\x"}'),
    *(b'{"S":"\xed\xa0\x80"}', b'{"V":2,"X":"\xc3"}', b'{"V":5}', b'{"V":"6"}', b'{"V":null}'),
    b'{"I":5,"X":' + b"[" * 3000 + b"]" * 3000 + b"}",
]
KEYS = [
    *(None, b"", b"a", b"b", b"7", b"\xc3\xa9", b"\xff", b"\xc3", b"null", b'{"K":2,"G":"x"}'),
    *(b'{"K":null,"G":null}', b'{"K":1}', b"\0\0\0\7", b"\0" * 7 + b"\5", b"\x7f\xf8" + b"\0" * 6),
    b"\x7f\xf0" + b"\0" * 5 + b"\1",
]
FIT = {
    "s": b"a",
    "long": b"\0" * 7 + b"\5",
    "whole": b"\0\0\0\7",
    "half": b"\0" * 8,
    "raw": b"\xff",
    "object": b'{"K":2,"G":"x"}',
    "nokey": b"",
    "alone": b"a",
    "lines": "\u00e9".encode(),
}


@pytest.fixture(scope="module", params=PLANS)
def program(request):
    return program_of(request.param)


def program_of(query, **settings):
    world = World(SETUP, **settings)
    format_ = SINKS.get(query, "JSON")
    world.run(f"CREATE STREAM O WITH (VALUE_FORMAT='{format_}') AS {query};")
    return writing(world.plan("O"), BUILTINS, MemoryRegistry())


def batch(topic, records, headers=None):
    count = range(len(records))
    times = [5 + at if len(record) == 2 else record[2] for at, record in enumerate(records)]
    keys, values = [record[0] for record in records], [record[1] for record in records]
    return RawBatch(
        [topic] * len(records), [3] * len(records), [*count], times, keys, values, headers
    )


def outcome(road, given):
    """The records or the error, and the log; NaN and the classes of values count."""
    log = Log()
    try:
        result = repr(list(road(given, log)))
    except QueryFailed as error:
        result = repr((str(error), error.detail, error.entry))
    return result, list(map(repr, log))


def stepwise(program):
    """The road of the same program without its fused loops."""
    plain = copy(program)
    plain._fused = {}
    return plain.straight


def agree(program, given):
    assert outcome(program.straight, given) == outcome(stepwise(program), given)


def good_value(topic, chance):
    if topic == "lines":
        return b"%d,w" % chance.randrange(9)
    if topic == "alone":
        return b"%d" % chance.randrange(9)
    return json.dumps(GOOD | {"I": chance.randrange(9), "V": chance.randrange(9)}).encode()


def odd_value(chance):
    members = {name: json.dumps(value) for name, value in GOOD.items()}
    for _ in range(chance.randrange(1, 4)):
        members[chance.choice(NAMES)] = chance.choice((*NUMBERS, *TEXTS))
    if chance.random() < 0.2:
        members.pop(chance.choice(list(members)))
    pairs = [f'"{chance.choice((name, name, name.lower()))}":{v}' for name, v in members.items()]
    return f"{{{','.join(pairs)}}}".encode("utf-8", "surrogatepass")


def any_value(topic, chance):
    match chance.randrange(6):
        case 0:
            return chance.choice(WHOLE)
        case 1:
            broken = list(odd_value(chance))
            damaged(chance, broken, list(range(256)))
            return bytes(broken)
        case 2 | 3:
            return odd_value(chance)
        case _:
            return good_value(topic, chance)


@pytest.mark.slow
def test_every_odd_value_alone(program):
    (topic,) = program.topics
    for value in WHOLE:
        agree(program, batch(topic, [(FIT[topic], value)]))
    for name in NAMES:
        for text in (*NUMBERS, *TEXTS):
            members = {each: json.dumps(value) for each, value in GOOD.items()} | {name: text}
            pairs = ",".join(f'"{each}":{value}' for each, value in members.items())
            agree(program, batch(topic, [(FIT[topic], f"{{{pairs}}}".encode())]))


def test_every_odd_key_alone(program):
    (topic,) = program.topics
    for key in KEYS:
        agree(program, batch(topic, [(key, good_value(topic, random.Random(1)))]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_lists_of_values_that_fuzzers_make(program, seed):
    chance = random.Random(seed)
    (topic,) = program.topics
    for _ in range(examples(60)):
        count = range(chance.randrange(1, 8))
        keys = [FIT[topic] if chance.random() < 0.9 else chance.choice(KEYS) for _ in count]
        times = [chance.choice((0, 1, 1 << 41)) if chance.random() < 0.97 else -1 for _ in count]
        values = [any_value(topic, chance) for _ in count]
        agree(program, batch(topic, list(zip(keys, values, times, strict=True))))


def test_ordinary_batches_take_one_loop(program, monkeypatch):
    monkeypatch.setattr(exits, "of_source", None)
    (topic,) = program.topics
    records = [(FIT[topic], good_value(topic, random.Random(n))) for n in range(20)]
    assert program.straight(batch(topic, records), Log())


def test_values_that_do_not_decode_stay_in_one_loop(monkeypatch):
    program = program_of(PLANS[1])
    given = batch("s", [(b"a", b"{"), (b"b", b'{"I": 2}'), (b"c", b"[]"), (b"d", b'{"I": 3}')])
    expected = outcome(stepwise(program), given)
    monkeypatch.setattr(exits, "of_source", None)
    assert outcome(program.straight, given) == expected
    assert ["deserializer" in entry for entry in expected[1]] == [True, True, False, False]


@pytest.mark.parametrize("query", OTHERS)
def test_other_plans_go_step_by_step(query, monkeypatch):
    program = program_of(query)
    given = batch(program.topics[0], [(FIT["long"], b'{"V": 3}')])
    agree(program, given)
    monkeypatch.setattr(exits, "of_source", None)
    with pytest.raises(TypeError):
        program.straight(given, Log())


def test_headers_go_along(program):
    (topic,) = program.topics
    records = [(FIT[topic], good_value(topic, random.Random(n))) for n in range(4)]
    given = batch(topic, records, [None, [("h", b"1")], None, [("h", None)]])
    agree(program, given)


def test_a_query_that_must_not_skip_ends_as_before():
    program = program_of(PLANS[0], **{"ksql.fail.on.deserialization.error": "true"})
    given = batch("s", [(b"a", b'{"I": 1}'), (b"b", b"{")])
    agree(program, given)
    with pytest.raises(QueryFailed):
        program.straight(given, Log())


def test_a_row_that_fails_twice_is_logged_as_one_row():
    program = program_of("SELECT K, CAST(S AS INT) AS N, CAST(S AS BIGINT) AS F FROM S")
    seen = []
    given = batch("s", [(b"a", b'{"S": "x"}'), (b"a", b'{"S": "x"}')])
    program.straight(given, lambda _operator, _message, row: seen.append(row))
    first, again, other, _ = seen
    assert first is again
    assert other is not first


def test_each_expression_is_evaluated_once():
    """Also in a batch that is refused: it is, before anything is evaluated."""
    program = program_of("SELECT K, CAST(S AS INT) AS N FROM S")
    given = batch("s", [(b"a", b'{"S": "x"}'), (b"b", b"null"), (b"c", b"{")])
    log = Log()
    program.straight(given, log)
    assert len(log) == 2
