"""User functions in processes of their own: what they do there does not reach this one."""

from __future__ import annotations

import fcntl
import os
import resource

import pytest

from ksql.core.errors import QueryFailed
from ksql.core.process.apart import is_readable
from ksql.core.types.model import BIGINT, INTEGER, STRING
from ksql.functions.instantiate import instantiate_aggregate, instantiate_scalar, instantiate_table
from ksql.functions.user.load import load_sources
from ksql.functions.user.udf_process import UdfProcessPool, UserFunctionFailed
from ksql.functions.user.watch import Limits, Overrun
from tests.unit.functions.overloads import nth

MANY = 1500
SOURCE = """
import os, time
from ksql.functions.udf import udaf, udf, udtf

print("functions may print")

@udf
def pid(x: int) -> int:
    print("also here")
    return os.getpid()

@udf
def spin(x: int) -> int:
    while True:
        pass

@udf
def leave(x: int) -> int:
    os._exit(3)

@udf
def fail(x: int) -> int:
    raise ValueError("no such thing")

@udf(per_query=True, params=["T x"], returns="STRING")
def named(types):
    return lambda value: f"{types[0]} {value}"

@udtf
def up_to(x: int) -> list[int]:
    return list(range(x))

@udaf
class weighed:
    def __init__(self, weight: int):
        self.weight = weight
    def init(self) -> int:
        return 0
    def step(self, state: int, value: int) -> int:
        return state + self.weight * value
    def merge(self, state: int, later: int) -> int:
        return state + later
    def undo(self, state: int, value: int) -> int:
        return state - self.weight * value

@udaf
class unborn:
    def init(self):
        return set()
    def step(self, state, value: int) -> int:
        return value
    def merge(self, state, later):
        return later
"""


@pytest.fixture
def apart():
    sources = {"f.py": SOURCE}
    functions, problems = load_sources(sources)
    assert not problems
    pool = UdfProcessPool(sources, Limits(1.0))
    yield pool, {one.name: one for one in pool.functions(functions)}
    pool.close()


def scalar(named, name, types=(INTEGER,)):
    return instantiate_scalar(named[name], nth(named[name], 0), types).row


def test_calls_are_made_elsewhere(apart):
    _, named = apart
    first = scalar(named, "PID")(1)
    assert first != os.getpid()
    assert scalar(named, "PID")(1) == first  # the process is kept
    assert scalar(named, "NAMED", (STRING,))("x") == "STRING x"
    assert instantiate_table(named["UP_TO"], nth(named["UP_TO"], 0), (INTEGER,))(3) == [0, 1, 2]


def test_an_aggregate(apart):
    _, named = apart
    instance = instantiate_aggregate(named["WEIGHED"], nth(named["WEIGHED"], 0), (INTEGER,), (10,))
    state = instance.step(instance.init(), 4)
    assert instance.result is not None
    assert instance.undo is not None
    assert instance.merge is not None
    assert instance.result(instance.merge(instance.undo(instance.step(state, 1), 4), state)) == 50
    assert instance.skips_null


def test_an_aggregate_is_known_as_one_that_may_fail(apart):
    """As in Spark's workers: its records are not combined, and a table's are tried before."""
    instance = instantiate_aggregate(
        apart[1]["WEIGHED"], nth(apart[1]["WEIGHED"], 0), (BIGINT,), [2]
    )
    assert instance.raises


def test_an_aggregate_without_a_first_state_ends_its_query(apart):
    instance = instantiate_aggregate(apart[1]["UNBORN"], nth(apart[1]["UNBORN"], 0), (BIGINT,))
    with pytest.raises(QueryFailed, match="unborn gives no first state: the state of unborn has a"):
        instance.init()


def test_error_of_a_function_is_reported(apart):
    _, named = apart
    with pytest.raises(UserFunctionFailed, match="no such thing"):
        scalar(named, "FAIL")(1)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("SPIN", "the user function spin did not return within 1 s"),
        ("LEAVE", r"the user function leave ended its process"),
    ],
)
def test_overrun_ends_only_its_own_process(apart, name, says):
    _, named = apart
    before = scalar(named, "PID")(1)
    with pytest.raises(Overrun, match=says):
        scalar(named, name)(1)
    assert scalar(named, "PID")(1) not in (before, os.getpid())


def test_nothing_is_left_behind(apart):
    pool, named = apart
    pid = scalar(named, "PID")(1)
    pool.close()
    late = scalar(named, "PID")(1)  # a call that was under way
    for each in (pid, late):
        with pytest.raises(ProcessLookupError):
            os.kill(each, 0)


def test_a_process_that_another_call_has_just_taken_is_not_waited_for(apart, monkeypatch):
    pool, named = apart
    monkeypatch.setattr(pool._idle, "empty", lambda: False)
    assert scalar(named, "PID")(1) != os.getpid()


def test_bigint_is_a_type_like_others(apart):
    _, named = apart
    assert scalar(named, "NAMED", (BIGINT,))(1) == "BIGINT 1"


def test_a_call_waits_also_beyond_1024_open_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < MANY + 10:
        pytest.skip("this system allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MANY + 10), hard))
    reading, writing = os.pipe()
    try:
        with os.fdopen(fcntl.fcntl(reading, fcntl.F_DUPFD, MANY), "rb") as pipe:
            assert pipe.fileno() >= MANY
            assert not is_readable(pipe, 0.01)
            os.write(writing, b"x")
            assert is_readable(pipe, 5.0)
    finally:
        os.close(reading)
        os.close(writing)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
