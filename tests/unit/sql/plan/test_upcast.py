"""Plans of format 1 name overloads by numbers; they are read as plans of the newest format."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from ksql.functions.identity import find_overload
from ksql.functions.registry import BUILTINS
from ksql.functions.udf import load_sources
from ksql.sql.plan import upcast
from ksql.sql.plan.codec import FORMAT_VERSION, dumps, loads
from tests.unit.world import World

SCRIPT = """
CREATE STREAM S (K STRING KEY, A ARRAY<BIGINT>, B BIGINT, C STRING)
  WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM T AS SELECT K, ABS(B) AS X, EXPLODE(A) AS E, TRANSFORM(A, x => ABS(x)) AS L FROM S;
CREATE TABLE U AS SELECT K, COUNT(*) AS N, SUM(B) AS X, LATEST_BY_OFFSET(C, 2) AS L
  FROM S WHERE ABS(B) > 1 GROUP BY K;
"""
NAMES = json.loads(files("ksql.sql.plan").joinpath("overloads1.json").read_text("utf-8"))


def numbered(text):
    """The plan as format 1 had it."""
    seen = set()

    def then(each):
        each.pop("generations", None)
        if "overload" in each:
            seen.add(each["function"])
            each["overload"] = NAMES[each["function"]].index(each["overload"])
        return each

    body = json.loads(text, object_hook=then)
    return json.dumps({**body, "version": 1}), seen


@pytest.fixture(scope="module")
def world():
    return World(SCRIPT)


def test_numbers_become_signatures(world):
    names = set()
    for sink in ("T", "U"):
        text, seen = numbered(world.query(sink).plan)
        assert loads(text) == world.plan(sink)
        assert dumps(loads(text)) == world.query(sink).plan
        names |= seen
    assert names == {"ABS", "EXPLODE", "TRANSFORM", "COUNT", "SUM", "LATEST_BY_OFFSET"}


def test_former_format_numbers_keep_their_meaning():
    for name, signatures in NAMES.items():
        for signature in signatures:
            assert find_overload(BUILTINS.get(name), signature) is not None, (name, signature)


@pytest.mark.parametrize("number", [99, -1])
def test_a_number_that_never_was_stays(world, number):
    text, _ = numbered(world.query("U").plan)
    fold = loads(text.replace('"overload": 0', f'"overload": {number}')).sink.source.source.folds[0]
    assert fold.overload == number


def test_the_number_of_a_function_that_hides_a_built_in_one_means_the_users(world):
    text = (
        "from ksql.functions.udf import udf\n@udf(name='ABS')\ndef own(x: int) -> int:\n return x\n"
    )
    library, problems = load_sources({"f.py": text})
    assert not problems
    plan, _ = numbered(world.query("T").plan)
    calls = [
        json.loads(dumps(loads(plan, known)))["plan"]["sink"]["source"]["value"][0]["expr"]
        for known in (BUILTINS, BUILTINS.with_(library))
    ]
    assert [call["function"] for call in calls] == ["ABS", "ABS"]
    assert [type(call["overload"]) for call in calls] == [str, int]


def test_a_flag_is_no_number(world):
    text, _ = numbered(world.query("U").plan)
    with pytest.raises(Exception, match="the stored plan is damaged"):
        loads(text.replace('"overload": 0', '"overload": false'))


def test_each_step_gives_the_next_version():
    assert sorted(upcast.UPCASTERS) == list(range(1, FORMAT_VERSION))
