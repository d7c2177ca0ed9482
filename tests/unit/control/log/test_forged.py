"""A command is data: whatever stands in it, nothing of it runs, and what is wrong is refused."""

from __future__ import annotations

import builtins
import json
from functools import reduce
from typing import Any

import pytest

from ksql.control.engine.changes import EndQuery, PutQuery, applied
from ksql.control.engine.ports import Command
from ksql.control.log.quarantine import UnreadableCommand
from ksql.control.log.record import decode, encode
from ksql.core.errors import KsqlError
from ksql.exec.dataflow.load import load, packed, unpacked
from ksql.sql.catalog.catalog import Catalog
from ksql.sql.plan import codec
from tests.unit.world import World

BREACH = "FORGED_CODE_RAN"
RUN = f"setattr(__import__('builtins'), '{BREACH}', 1)"
PAYLOADS: tuple[Any, ...] = (
    RUN,
    f"+ {RUN} +",
    f"or {RUN} or",
    f"AND {RUN} AND",
    f"' + {RUN} + '",
    f'" + {RUN} + "',
    f"0] + [{RUN}] + [0",
    f"x'): {RUN}\n#",
    f"x): {RUN}\ndef y(z",
    f"x\n{RUN}\n#",
    f"x\n    {RUN}\n    #",
    f"\\'); {RUN} #",
    f"{{{RUN}}}",
    "{0.__class__.__init__.__globals__}",
    "../../../etc",
    "os:system",
    "",
    "\x00",
    7,
    -1,
    1.5,
    None,
    True,
    [],
    [RUN],
    {},
    {"$": "dict", "v": [[RUN, RUN]]},
    {"$": "builtins.exec", "v": RUN},
    {"$": "nodes.Filter", "predicate": RUN},
)
SCRIPT = """
CREATE STREAM S (K STRING KEY, I INT, B BIGINT, D DOUBLE, X DECIMAL(9,2), T STRING, O BOOLEAN,
  A ARRAY<INT>, M MAP<STRING, INT>, R STRUCT<F INT, G STRING>, TS TIMESTAMP, H BYTES HEADER('h'))
  WITH (KAFKA_TOPIC='s', PARTITIONS=1, TIMESTAMP='TS');
CREATE STREAM L (K STRING KEY, T STRING, U STRING) WITH (KAFKA_TOPIC='l', PARTITIONS=1,
  VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='TAB', TIMESTAMP='U', TIMESTAMP_FORMAT='yyyy');
CREATE TABLE P (K STRING PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='p', PARTITIONS=1);
CREATE TYPE ADDRESS AS STRUCT<Z INT>;
CREATE STREAM Q1 WITH (VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='|') AS SELECT K, I + B AS C1,
  -D AS C2, X * 2 AS C3, T + 'x' AS C4, I % 3 AS C5, D / 2 AS C6, D - I AS C7, LCASE(T) AS C8
  FROM S WHERE I > 1 AND T LIKE 'a!%' ESCAPE '!' OR NOT O AND B IN (1, 2, I) OR D IS NULL;
CREATE STREAM Q2 AS SELECT T, K, A[1] AS C1, M['a'] AS C2, R->F AS C3, CAST(I AS STRING) AS C4,
  ARRAY[I, 2] AS C5, MAP('k' := I) AS C6, STRUCT(N := I, `o'p` := T) AS C7,
  TRANSFORM(A, e => e + 1) AS C8, CASE WHEN I = 1 THEN 'a' ELSE T END AS C9,
  CASE I WHEN 1 THEN 2 END AS C10, I BETWEEN 1 AND 3 AS C11, T IS DISTINCT FROM 'x' AS C12, H
  FROM S PARTITION BY T;
CREATE STREAM Q3 AS SELECT K, EXPLODE(A) AS E FROM S;
CREATE TABLE Q4 AS SELECT T, COUNT(*) AS C, TOPK(I, 2) AS TOP, SUM(X) AS SU,
  LATEST_BY_OFFSET(R) AS L FROM S
  WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS, GRACE PERIOD 1 MINUTE)
  GROUP BY T HAVING COUNT(*) > 0;
CREATE STREAM Q5 AS SELECT S.K, S.I, P.N FROM S LEFT JOIN P ON S.K = P.K;
CREATE STREAM Q6 AS SELECT * FROM L;
INSERT INTO Q6 SELECT K, T, U FROM L;
CREATE SOURCE TABLE V (K STRING PRIMARY KEY, N INT) WITH (KAFKA_TOPIC='p');
PAUSE ALL; RESUME ALL; DROP TYPE ADDRESS;
"""
EXPRESSIONS = """Arith Negate Compare Logical Not IsNull In Like Case Cast Subscript Deref MakeArray
  MakeMap MakeStruct LambdaVar Lambda Call Column Const"""
ROW = {"I": 2, "B": 3, "D": 1.5, "X": 1, "T": "a%", "O": False, "A": [1], "M": {"a": 1},
       "R": {"F": 1, "G": "g"}, "TS": 5}  # fmt: skip


@pytest.fixture(scope="module")
def commands():
    world = World(SCRIPT)
    return tuple(world.log.commands)


@pytest.fixture(autouse=True)
def unharmed():
    yield
    assert not hasattr(builtins, BREACH)


def places(value, path=()):
    """Every leaf of stored JSON."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))
    else:
        yield path


def kind(body, path):
    """A place without what only tells repetitions apart: the class and the field."""
    value, tags = body, []
    for step in path:
        tags.append(value["$"] if isinstance(value, dict) and "$" in value else type(step).__name__)
        value = value[step]
    names = [str(step) for step in path if isinstance(step, str)]
    return (*tags[-3:], *names[-2:], type(value).__name__)


def with_(body, path, value):
    """The JSON with another leaf; what is not on the way to it is shared."""
    if not path:
        return value
    changed = body.copy()
    changed[path[0]] = with_(changed[path[0]], path[1:], value)
    return changed


def forged(commands, payloads, part):
    """Commands and plans, each with one leaf that somebody else has written."""
    seen = set()
    for number, command in list(enumerate(commands))[part]:
        key, text = encode(command)
        body = json.loads(text)
        for path in places(body):
            if path[-1] == "plan":
                plan = json.loads(at(body, path))
                for inner in places(plan):
                    if (spot := ("plan", *kind(plan, inner))) not in seen:
                        seen.add(spot)
                        for payload in payloads:
                            altered = json.dumps(with_(plan, inner, payload))
                            yield number, spot, key, with_(body, path, altered)
            if (spot := kind(body, path)) not in seen:
                seen.add(spot)
                for payload in payloads:
                    yield number, spot, key, with_(body, path, payload)


def at(value, path):
    for step in path:
        value = value[step]
    return value


def catalogs(commands):
    """What each command finds."""
    history = [Catalog()]
    for command in commands:
        history.append(reduce(applied, command.changes, history[-1]))
    return history


def taken_in(catalog, command):
    """Everything that is done with a command: applied, its query started, a record read."""
    world = World()
    world.engine.catalog = catalog
    world.engine.replay(99, command)
    for change in command.changes:
        if isinstance(change, PutQuery):
            world.runner.start(change.query)
            world.feed("s", ("k", ROW, 1))
            world.feed("p", ("k", {"N": 1}, 2))
            world.topics.append("l", b"k", b"t\t2020", 3)
            world.drain()


def outcome(catalog, key, body):
    """What becomes of a forged command; None if it is taken for a command like any other."""
    try:
        taken_in(catalog, decode(9, key, json.dumps(body).encode()))
    except Exception as error:  # noqa: BLE001 - judged by the test
        return error
    return None


def judged(commands, payloads, part):
    """How many were refused and how many not; nothing of them may have run."""
    refused = taken = 0
    before = catalogs(commands)
    for number, spot, key, body in forged(commands, payloads, part):
        result = outcome(before[number], key, body)
        assert not hasattr(builtins, BREACH), spot
        if isinstance(result, KsqlError):
            refused += 1
            assert result.text(), spot
        else:  # a record that fails ends its query only
            taken += 1
            assert result is None or spot[0] == "plan", (spot, result)
    return refused, taken


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_nothing_that_is_forged_runs_and_what_is_wrong_is_refused(commands, part):
    refused, taken = judged(commands, [f"or {RUN} or", 7], slice(part, None, 4))
    assert refused > 50
    assert taken > 5  # a name is a name, however it looks


def test_the_corpus_is_in_order(commands):
    for number, (command, before) in enumerate(zip(commands, catalogs(commands), strict=False)):
        assert decode(number, *encode(command)) == command
        taken_in(before, command)
    stored = "".join(encode(command)[1].decode() for command in commands)
    for tag in ("Filter", "Rekey", "Explode", "Select", "Aggregate", "StreamTableJoin", "Sink"):
        assert f"nodes.{tag}" in stored
    for tag in EXPRESSIONS.split():
        assert f"bound.{tag}" in stored, tag


def plan_of(commands):
    return next(
        change.query
        for command in commands
        for change in command.changes
        if isinstance(change, PutQuery)
    )


def test_a_stored_plan_brings_no_functions(commands):
    body = json.loads(plan_of(commands).plan)
    body |= {"functions": {"f.py": RUN}, "registry": None, "limits": [10.0, 10**9]}
    for text in (json.dumps(body), packed(json.dumps(body), {})):
        with pytest.raises(codec.UnreadablePlan, match="damaged"):
            load(text)
    inner = {"plan": plan_of(commands).plan, "functions": {"f.py": RUN}}
    inner |= {"registry": None, "limits": [10.0, 10**9]}
    with pytest.raises(codec.UnreadablePlan, match="damaged"):
        codec.loads(json.dumps(inner))
    assert unpacked(packed(json.dumps(inner), {})).functions.get("UCASE") is not None
    with pytest.raises(codec.UnreadablePlan, match="damaged"):
        load(packed(json.dumps(inner), {}))


@pytest.mark.parametrize("query_id", ["../../x", "a/b", "", ".", "a b", "x\n", "x\x00"])
def test_a_query_id_leads_to_no_other_directory(query_id):
    key, value = encode(Command("terminate/x/execute", "", (EndQuery(query_id),)))
    with pytest.raises(UnreadableCommand, match="cannot be read") as caught:
        decode(1, key, value)
    assert "is no query id" in caught.value.reason


def test_a_plan_is_that_of_its_query(commands):
    command = next(c for c in commands if any(isinstance(x, PutQuery) for x in c.changes))
    key, value = encode(command)
    query_id = plan_of(commands).id
    with pytest.raises(UnreadableCommand) as caught:
        decode(1, key, value.replace(f'"id":"{query_id}"'.encode(), b'"id":"CSAS_OTHER_1"'))
    assert "belongs to another query" in caught.value.reason
