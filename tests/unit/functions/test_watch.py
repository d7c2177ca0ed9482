"""User functions are watched where they run: each case is a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
import sys, time, os
from ksql.functions.user.load import load_sources
from ksql.functions.user.watch import CallWatch, Limits, Overrun, watched
from ksql.functions.instantiate import instantiate_scalar

SOURCE = '''
import time
from ksql.functions.udf import udf
kept = []

@udf
def spin(x: int) -> int:
    while True:
        pass

@udf
def sleep(x: int) -> int:
    time.sleep(1000)

@udf
def stubborn(x: int) -> int:
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass

@udf
def hog(x: int) -> int:
    return sum(range(10 ** 14))

@udf
def eat(x: int) -> int:
    while True:
        kept.append(b'x' * 1_000_000)
        time.sleep(0.005)  # slow enough for a watch that shares its core with others

@udf
def gulp(x: int) -> int:
    return len(bytes(10 ** 12))

@udf
def add(x: int) -> int:
    return x + 1
'''
functions, problems = load_sources({"f.py": SOURCE})
assert not problems, problems
watch = CallWatch(Limits(60.0 if sys.argv[1] == "EAT" else 0.3, 300_000_000, 0.5))
named = {f.name: watched(f, watch) for f in functions}
call = named[sys.argv[1]].overloads[0].row
try:
    print(call(1))
except Overrun as error:
    print("overrun:", error)
except MemoryError:
    print("no memory")
print(named["ADD"].overloads[0].row(1))
"""


def run(name: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), name]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ADD", "2"),
        ("SPIN", "overrun: the user function spin did not return within 0.3 s"),
        ("SLEEP", "overrun: the user function sleep did not return within 0.3 s"),
        ("EAT", "overrun: the user function eat took more memory than 300000000 bytes"),
        ("GULP", "no memory"),
    ],
)
def test_a_call_is_interrupted_and_the_process_continues(name, says):
    done = run(name)
    assert (done.stdout, done.returncode) == (f"{says}\n2\n", 0), done.stderr


def test_uninterruptible_function_ends_its_process():
    done = run("STUBBORN")
    assert done.returncode == 75
    assert "the user function stubborn did not return within 0.3 s; its process ends" in done.stderr


def test_function_that_blocks_the_interpreter_is_ended_by_the_system():
    done = run("HOG")
    assert done.returncode < 0  # by a signal
    assert done.stdout == ""
