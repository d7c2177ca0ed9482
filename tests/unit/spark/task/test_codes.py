"""What a checkpoint has seen of users' functions; a plan runs as all of that asks."""

from __future__ import annotations

import json

import pytest

from ksql.exec.dataflow.load import load
from ksql.functions.registry import BUILTINS
from ksql.functions.udf import load_sources
from ksql.spark.task import codes
from ksql.sql.plan import codec
from ksql.sql.plan.nodes import Filter, QueryPlan
from ksql.sql.plan.walk import nodes
from tests.unit.spark.query.test_runner import Desk
from tests.unit.world import World

FILE = "from ksql.functions.udf import udf\n@udf\ndef f(x: int) -> int:\n    return x * {}\n"
SOURCE = (
    "CREATE TABLE T (ID STRING PRIMARY KEY, G STRING, X BIGINT) "
    "WITH (KAFKA_TOPIC='t', PARTITIONS=1);"
)
FILTERED = "CREATE TABLE U AS SELECT ID, X FROM T WHERE F(X) > 1;"
SUMMED = "CREATE TABLE U AS SELECT G, SUM(F(X)) N FROM T GROUP BY G;"


def functions(times):
    return BUILTINS.with_(load_sources({"f.py": FILE.format(times)})[0])


def query_of(text):
    return World(SOURCE, text, functions=functions(1)).query("U")


def started(folder, query, times, *, first=False):
    """One start of the service; gives the plan that its workers get."""
    desk = Desk(folder, functions={"f.py": FILE.format(times)})
    if first:
        desk.runner.start(query)
    else:
        desk.runner.resume([query])
    desk.runner.stop(query.version)
    body = json.loads(desk.runtime.started[-1].plan_json)
    load(desk.runtime.started[-1].plan_json)
    return codec.loads(body["plan"])


def leftovers(plan):
    return [node.leftovers for node in nodes(plan.sink) if isinstance(node, Filter)]


def test_code_that_came_back_has_let_pass_what_the_other_one_did(tmp_path):
    query = query_of(FILTERED)
    assert leftovers(started(tmp_path, query, 1, first=True)) == [False]
    assert leftovers(started(tmp_path, query, 1)) == [False]
    assert leftovers(started(tmp_path, query, -1)) == [True]
    assert leftovers(started(tmp_path, query, 1)) == [True]
    seen = codes.read(tmp_path / "queries" / query.id)
    assert [len(digests.split()) for digests in seen.values()] == [2]


def test_a_built_in_function_that_ran_meanwhile_was_other_code(tmp_path):
    file = {"f.py": FILE.format(1).replace("def f(", "def abs(")}
    query = World(
        SOURCE,
        FILTERED.replace("F(X)", "ABS(X)"),
        functions=BUILTINS.with_(load_sources(file)[0]),
    ).query("U")
    ran: list[QueryPlan] = []
    for files in (file, {}, file):
        desk = Desk(tmp_path, functions=files)
        desk.runner.resume([query]) if ran else desk.runner.start(query)
        desk.runner.stop(query.version)
        ran.append(codec.loads(json.loads(desk.runtime.started[-1].plan_json)["plan"]))
    assert [leftovers(plan) for plan in ran] == [[False], [True], [True]]


def test_a_checkpoint_before_the_file_takes_the_plans_code(tmp_path):
    query = query_of(FILTERED)
    started(tmp_path, query, 1, first=True)
    (tmp_path / "queries" / query.id / "code.json").unlink()
    assert leftovers(started(tmp_path, query, -1)) == [True]


@pytest.mark.parametrize(("text", "said"), [(SUMMED, 1), (FILTERED, 0)])
def test_state_of_other_code_is_logged(tmp_path, caplog, text, said):
    query = query_of(text)
    started(tmp_path, query, 1, first=True)
    assert not [each for each in caplog.records if each.message == "function_code_changed"]
    for _ in range(2):
        started(tmp_path, query, 2)
    warnings = [each for each in caplog.records if each.message == "function_code_changed"]
    assert [each.levelname for each in warnings] == ["WARNING"] * said
    assert all(each.reason.startswith("the code of F has changed, and it") for each in warnings)


def test_a_query_that_calls_no_users_function_has_no_such_file(tmp_path):
    query = query_of("CREATE TABLE U AS SELECT ID, ABS(X) AS X FROM T;")
    started(tmp_path, query, 1, first=True)
    assert not (tmp_path / "queries" / query.id / "code.json").exists()
