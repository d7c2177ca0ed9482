from __future__ import annotations

import ast
import gc
import linecache
import re
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

from ksql.core.codegen import Draft, define, execute, gathered, indent
from ksql.exec.dataflow.compiled import writing
from ksql.exec.operators.folds import Slot, compile_folds
from ksql.functions.registry import BUILTINS
from ksql.functions.spec import AggregateFunction
from ksql.functions.user.load import load_sources
from tests.unit.world import World

ROOT = Path(__file__).parents[3]
_RUNNERS = re.compile(r"(?<![.\w])(?:exec|eval|compile)\b")
_TEXT = "def f(x):\n    y = x + 1\n    return y / 0\n"


def shown(call, *arguments):
    """The traceback of the call's error as text."""
    try:
        call(*arguments)
    except Exception:  # noqa: BLE001 - any error's traceback is what is looked at
        return traceback.format_exc()
    raise AssertionError("no error")


def entries():
    gc.collect()
    return {file for file in linecache.cache if file.startswith("<generated ")}


def test_a_traceback_shows_the_line_of_generated_code():
    trace = shown(define("probe", _TEXT, {})["f"], 1)
    assert ': probe>", line 3, in f\n    return y / 0\n' in trace


def test_a_traceback_shows_the_line_of_an_aggregate():
    def fails(*_arguments):
        raise ValueError("odd")

    function = AggregateFunction(("INT",), "INT", int, fails)
    folds = compile_folds([Slot(0, function, (0,))])
    assert ': aggregates>", line' in (trace := shown(folds.step, folds.init(), (1,)))
    assert re.search(r"n0 = \(?step0\(s\[1\], a0_0\)", trace)


def test_a_traceback_shows_the_line_of_a_users_function():
    text = "from ksql.functions.udf import udf\n@udf\ndef f(x: int) -> int:\n    return x // 0\n"
    ((function,), problems) = load_sources({"sums.py": text})
    assert problems == []
    trace = shown(function.overloads[0].row, 1)
    assert 'File "sums.py", line 4, in f\n    return x // 0\n' in trace


def test_every_text_of_a_query_is_found_by_its_name():
    world = World("CREATE STREAM S (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);")
    world.run("CREATE TABLE X AS SELECT A, COUNT(*) FROM S GROUP BY A EMIT CHANGES;")
    with gathered() as texts:
        program = writing(world.plan("X"), BUILTINS)  # the serde was made before, for the sandbox
    subjects = {each.file.split(": ")[1] for each in texts}
    assert {"aggregates>", "combined aggregates>", "rows of s>", "JSON reader>"} <= subjects
    for each in texts:
        assert "".join(linecache.getlines(each.file)) == each.text
    del program
    assert entries().isdisjoint(each.file for each in texts)


def test_a_text_goes_with_its_last_function():
    before = entries()
    names = define("two", "def f():\n    return 1\ndef g():\n    return 2\n", {})
    kept = names["g"]
    del names
    assert len(entries() - before) == 1
    assert kept() == 2
    del kept
    assert entries() == before


def test_many_compilations_leave_nothing_behind():
    before = entries()
    for _ in range(200):
        define("many", _TEXT, {})
    assert entries() == before


def test_two_texts_in_one_namespace_live_as_long_as_it():
    names: dict[str, Any] = {}
    files = []
    with gathered() as texts:
        define("a", "def a():\n    return 1\n", names)
        define("b", "def b():\n    return a()\n", names)
    files = [each.file for each in texts]
    assert set(files) <= entries()
    assert names["b"]() == 1
    names.clear()
    assert entries().isdisjoint(files)


def test_a_newer_text_under_the_same_name_is_kept():
    old: dict[str, Any] = {}
    new: dict[str, Any] = {}
    execute("<generated same>", "x = 1\n", old)
    execute("<generated same>", "x = 2\n", new)
    old.clear()
    gc.collect()
    assert linecache.getlines("<generated same>") == ["x = 2\n"]
    new.clear()
    gc.collect()
    assert linecache.getlines("<generated same>") == []


def test_a_text_that_is_no_python_leaves_nothing_behind():
    before = entries()
    with pytest.raises(SyntaxError):
        define("broken", "def f(:\n", {})
    assert entries() == before


def test_texts_are_gathered_in_their_own_thread_and_only_meanwhile():
    with gathered() as outer:
        thread = threading.Thread(target=define, args=("elsewhere", _TEXT, {}))
        thread.start()
        thread.join()
        with gathered() as inner:
            define("inside", _TEXT, {})
        define("outside", _TEXT, {})
    define("later", _TEXT, {})
    assert [each.file.split(": ")[1] for each in inner] == ["inside>"]
    assert [each.file.split(": ")[1] for each in outer] == ["outside>"]


def test_a_draft_names_its_values_and_runs_its_functions():
    draft = Draft({"one": 1})
    two = draft.add(2)
    draft.define("f(x)", ["if x:", *indent([f"return one + {two}"]), "return g()"])
    draft.define("g()", ["return 'none'"])
    f = draft.compiled("sums")["f"]
    assert (f(1), f(0)) == (3, "none")


def test_text_becomes_code_in_one_module_only():
    modules = set()
    for file in [*ROOT.glob("ksql/**/*.py"), *ROOT.glob("server/**/*.py")]:
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if _RUNNERS.search(text) else ():
            if isinstance(node, ast.Name) and _RUNNERS.fullmatch(node.id):
                modules.add(str(file.relative_to(ROOT)))
    assert modules == {"ksql/core/codegen.py"}
