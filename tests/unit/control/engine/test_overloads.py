"""Running queries keep the overload that they were made with, whatever is declared beside it."""

from __future__ import annotations

import pytest

from ksql.functions.errors import OverloadGone
from ksql.functions.registry import BUILTINS
from ksql.functions.udf import load_sources
from tests.unit.world import World, load

HEAD = """
from __future__ import annotations
from ksql.functions.udf import udaf, udf, udtf
"""
NUMBER = {
    "udf": "@udf\ndef mark(x: int) -> str:\n    return f'number {x}'\n",
    "udtf": "@udtf\ndef parts(x: int) -> list[int]:\n    return [x, x + 1]\n",
    "udaf": (
        "@udaf\nclass Gather:\n"
        "    def init(self) -> int:\n        return 0\n"
        "    def step(self, state: int, x: int) -> int:\n        return state + x\n"
        "    def merge(self, a: int, b: int) -> int:\n        return a + b\n"
    ),
}
TEXT = {
    "udf": "@udf\ndef mark(x: str) -> str:\n    return f'text {x}'\n",
    "udtf": "@udtf\ndef parts(x: str) -> list[str]:\n    return list(x)\n",
    "udaf": (
        "@udaf\nclass Gather:\n"
        "    def init(self) -> str:\n        return ''\n"
        "    def step(self, state: str, x: str) -> str:\n        return state + x\n"
        "    def merge(self, a: str, b: str) -> str:\n        return a + b\n"
    ),
}
QUERIES = {
    "udf": "CREATE STREAM U AS SELECT K, MARK(A) V FROM S;",
    "udtf": "CREATE STREAM U AS SELECT K, PARTS(A) V FROM S;",
    "udaf": "CREATE TABLE U AS SELECT K, GATHER(A) V FROM S GROUP BY K;",
}
SOURCE = "CREATE STREAM S (K STRING KEY, A BIGINT, B STRING) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"


def functions(*texts):
    """The built-in functions and those of files, in the order of their names."""
    files = {f"{n}.py": HEAD + text for n, text in enumerate(texts)}
    library, problems = load_sources(files)
    assert not problems, problems
    return BUILTINS.with_(library)


def again(world, functions_):
    """The world as after a restart with other functions."""
    query = world.query("U")
    world.runner.stop(query.version)
    load(world.engine, world.runner, functions_)
    world.runner.start(world.query("U"))


@pytest.fixture(params=QUERIES)
def kind(request):
    return request.param


def one(world, time=1):
    world.feed("s", ("k", {"A": 1, "B": "x"}, time))


def test_an_overload_that_is_declared_before_it_changes_nothing(kind):
    world = World(SOURCE, QUERIES[kind], functions=functions(NUMBER[kind]))
    one(world)
    before = world.out("U")
    again(world, functions(TEXT[kind], NUMBER[kind]))
    one(world, 2)
    assert world.runner.errors() == []
    if kind == "udaf":
        assert world.last("U") == {"k": {"V": 2}}
    else:
        values = [value for _, value, _ in world.out("U")]
        assert values == 2 * [value for _, value, _ in before]


def test_an_overload_that_is_gone_ends_its_query_with_a_reason(kind):
    world = World(SOURCE, QUERIES[kind], functions=functions(NUMBER[kind]))
    with pytest.raises(OverloadGone) as caught:
        again(world, functions(TEXT[kind]))
    assert "which is not there any more" in caught.value.message
    assert "Bring that function back" in caught.value.hint


def test_a_query_whose_overload_is_gone_may_be_replaced(kind):
    world = World(SOURCE, QUERIES[kind], functions=functions(NUMBER[kind]))
    load(world.engine, world.runner, functions(TEXT[kind]))
    if kind == "udaf":  # its state is another function's: refused, with all reasons
        error = world.refuse(QUERIES[kind].replace("CREATE", "CREATE OR REPLACE", 1))
        assert error.code // 100 == 400
        return
    expression, result = {"udf": ("UCASE(B)", "X"), "udtf": ("A", 1)}[kind]
    [entity] = world.run(f"CREATE OR REPLACE STREAM U AS SELECT K, {expression} V FROM S;")
    assert entity.upgrade.accepted
    one(world)
    assert world.out("U")[-1][1] == {"V": result}
