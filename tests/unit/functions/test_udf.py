from __future__ import annotations

import copy
import textwrap
from pathlib import Path

import pytest

from ksql.functions.instantiate import instantiate_aggregate, instantiate_scalar, instantiate_table
from ksql.functions.registry import BUILTINS, describe
from ksql.functions.resolve import resolve_overload
from ksql.functions.udf import load_sources, read_directory
from ksql.functions.user.annotations import BadDeclaration, WrongResult, WrongState
from ksql.spark.task.packing import pack, unpack
from tests.unit.functions.harness import D, fold, result, types_of
from tests.unit.functions.overloads import nth

CORPORA = Path(__file__).parents[3] / "qtt" / "functions"
HEADER = """
from __future__ import annotations
import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, TypedDict, TypeVar
from ksql.functions.udf import udaf, udf, udtf
T = TypeVar("T")
"""


def loaded(text, file="mine.py"):
    functions, problems = load_sources({file: HEADER + textwrap.dedent(text)})
    return {function.name: function for function in functions}, problems


def one(text):
    functions, problems = loaded(text)
    assert not problems, problems[0]
    (function,) = functions.values()
    return function


def called(function, types, *args):
    chosen = resolve_overload(function, types_of(types))
    run = instantiate_scalar(function, chosen.overload, chosen.params)
    return None if run.nulls == "propagate" and None in args else run.row(*args)


def test_types_from_annotations():
    function = one(
        '''
        @udf(author="me", version="1.2")
        def surround(text: str, times: int, mark: str = "*") -> str:
            """The text between marks.

            More about it.
            """
            return mark * times + text + mark * times
        '''
    )
    assert called(function, "STRING; INT; STRING", "a", 2, "-") == "--a--"
    assert called(function, "STRING; INT; STRING", None, 2, "-") is None
    assert (function.name, function.spelling) == ("SURROUND", "surround")
    assert (function.author, function.version, function.path) == ("me", "1.2", "mine.py")
    assert function.description == "The text between marks."
    assert [str(v) for v in describe(function)] == [
        "SURROUND(text VARCHAR, times BIGINT, mark VARCHAR)"
    ]


def test_types_from_sql():
    function = one(
        """
        @udf(name="half", params=("DECIMAL amount",), returns="DECIMAL(12, 2)", description="Half.")
        def f(amount):
            return amount / 2
        """
    )
    assert called(function, "DECIMAL(4, 2)", D("5.01")) == D("2.51")
    assert function.description == "Half."


@pytest.mark.parametrize(
    ("signature", "body", "types", "args", "expected"),
    [
        ("x: int | None -> str", "str(x)", "BIGINT", (None,), "None"),
        ("x: Annotated[int, 'INT'] -> Annotated[int, 'INT']", "x + 1", "INT", (1,), 2),
        ("*xs: float -> float", "sum(xs)", "DOUBLE; DOUBLE", (1.0, 2.0), 3.0),
        ("x: bool -> bool", "not x", "BOOLEAN", (True,), False),
        ("x: bytes -> bytes", "x + x", "BYTES", (b"a",), b"aa"),
        ("x: Decimal -> str", "str(x)", "DECIMAL(3, 1)", (D("1.5"),), "1.5"),
        ("x: Any -> str", "repr(x)", "MAP<STRING, INT>", ({"a": 1},), "{'a': 1}"),
        ("x: list[T] -> T", "x[0]", "ARRAY<INT>", ([7],), 7),
        (
            "x: dict[str, list[int]] -> list[int]",
            "x['a']",
            "MAP<STRING, ARRAY<BIGINT>>",
            ({"a": [1]},),
            [1],
        ),
        ("x: dt.date -> dt.date", "x + dt.timedelta(1)", "DATE", (0,), 1),
        ("x: dt.time -> dt.time", "x.replace(hour=1)", "TIME", (1500,), 3_601_500),
        (
            "x: dt.datetime -> dt.datetime",
            "x.replace(year=1971)",
            "TIMESTAMP",
            (1,),
            31_536_000_001,
        ),
        (
            "x: dt.datetime -> dt.datetime",
            "x.replace(tzinfo=dt.timezone(dt.timedelta(hours=1)))",
            "TIMESTAMP",
            (0,),
            -3_600_000,
        ),
        ("x: list[dt.date | None] -> int", "x[0].year", "ARRAY<DATE>", ([365, None],), 1971),
        (
            "x: int -> dict[str, dt.date | None]",
            "{'a': dt.date(1970, 1, 3), 'b': None}",
            "BIGINT",
            (1,),
            {"a": 2, "b": None},
        ),
        ("x: int -> str | None", "None", "BIGINT", (1,), None),
        ("x: int -> float", "x", "BIGINT", (1,), 1.0),
        ("x: int -> list[int]", "(x, None)", "BIGINT", (1,), [1, None]),
    ],
)
def test_annotations(signature, body, types, args, expected):
    params, _, returns = signature.partition(" -> ")
    function = one(f"@udf\ndef f({params}) -> {returns}:\n    return {body}\n")
    result = called(function, types, *args)
    assert result == expected
    assert type(result) is type(expected)


def test_structs():
    function = one(
        """
        class Person(TypedDict):
            name: str
            born: dt.date

        class Name(TypedDict):
            first: str
            last: str

        @udf
        def age(person: Person) -> int:
            return 2000 - person["born"].year

        @udf(name="age")
        def born(year: int) -> Person:
            return {"name": "x", "born": dt.date(1970, 1, 2)}

        @udf(name="age")
        def split(name: str) -> Name:
            return {"first": name}
        """
    )
    assert called(function, "STRUCT<`name` STRING, born DATE>", {"name": "a", "born": 0}) == 30
    assert called(function, "BIGINT", 1) == {"name": "x", "born": 1}
    assert called(function, "STRING", "a") == {"first": "a", "last": None}
    assert (
        str(resolve_overload(function, types_of("STRING")).returns)
        == "STRUCT<`first` STRING, `last` STRING>"
    )


@pytest.mark.parametrize(
    ("returns", "value"),
    [
        ("STRING", "1"),
        ("INT", "2**31"),
        ("BIGINT", "True"),
        ("BIGINT", "1.0"),
        ("DOUBLE", "'x'"),
        ("BOOLEAN", "1"),
        ("TIME", "-1"),
        ("DECIMAL(2, 1)", "1.5"),
        ("ARRAY<INT>", "{1}"),
        ("ARRAY<INT>", "['x']"),
        ("MAP<STRING, INT>", "[]"),
        ("STRUCT<A INT>", "{'B': 1}"),
        ("STRUCT<A INT>", "[]"),
    ],
)
def test_wrong_results_are_evaluation_errors(returns, value):
    function = one(f"@udf(params=(), returns='{returns}')\ndef f():\n    return {value}\n")
    with pytest.raises(WrongResult):
        called(function, "")


@pytest.mark.parametrize(
    "text",
    [
        "@udf\ndef f(x) -> int: ...",
        "@udf\ndef f(x: int): ...",
        "@udf\ndef f(x: set[int]) -> int: ...",
        "@udf\ndef f(x: int | str) -> int: ...",
        "@udf\ndef f(x: Missing) -> int: ...",
        "@udf\ndef f(x: int) -> Decimal: ...",
        "@udf\ndef f(x: int) -> Any: ...",
        "@udf(params=('INTS',), returns='INT')\ndef f(x): ...",
        "@udf(params=('INT',), returns='NUMBER')\ndef f(x): ...",
        "@udf(name='a b')\ndef f(x: int) -> int: ...",
        "@udf(per_query=True)\ndef f(types): ...",
        "@udtf\ndef f(x: int) -> int: ...",
        "@udaf\nclass F:\n    def init(self): ...",
    ],
)
def test_declarations_that_cannot_be(text):
    functions, (problem,) = loaded(text)
    assert not functions
    assert problem.message.startswith(BadDeclaration.__name__)
    assert problem.line


def test_table_functions():
    function = one(
        """
        @udtf
        def words(text: str) -> Iterator[str]:
            yield from text.split()

        @udtf(name="words", params=("ARRAY<T> x", "INT n"), returns="T")
        def repeat(x, n):
            return x * n

        @udtf(name="words")
        def days(day: dt.date) -> list[dt.date]:
            return [day, day + dt.timedelta(1)]

        @udtf(name="words", params=("BOOLEAN x",), returns="INT")
        def none(x):
            return None
        """
    )

    def rows(types, *args):
        chosen = resolve_overload(function, types_of(types))
        return instantiate_table(function, chosen.overload, chosen.params)(*args)

    assert rows("STRING", "a b") == ["a", "b"]
    assert rows("ARRAY<INT>; INT", [1], 2) == [1, 1]
    assert rows("DATE", 5) == [5, 6]
    assert rows("BOOLEAN", True) == []


AGGREGATE = '''
@udaf(state="STRUCT<A BIGINT>")
class Total:
    """All of it."""
    def __init__(self, start: int, *more: int, settings: dict[str, str]) -> None:
        self.start = start + sum(more) + int(settings.get("plus", 0))
    def init(self) -> list[int]:
        return [self.start]
    def step(self, state: list[int], value: dt.date, *others: int) -> list[int]:
        return [state[0] + value.year + sum(others)]
    def undo(self, state: list[int], value: dt.date, *others: int) -> list[int]:
        return [state[0] - value.year - sum(others)]
    def merge(self, state: list[int], later: list[int]) -> list[int]:
        return [state[0] + later[0] - self.start]
    def result(self, state: list[int]) -> int:
        return state[0]
'''


def test_aggregates():
    function = one(AGGREGATE.replace("*more: int, ", "").replace("sum(more) + ", ""))
    chosen = resolve_overload(function, types_of("DATE; BIGINT; BIGINT; INT"))
    assert chosen.literals == 1
    assert str(chosen.state) == "STRUCT<`A` BIGINT>"
    settings = {"ksql.functions.total.plus": "100"}
    instance = instantiate_aggregate(function, chosen.overload, chosen.params[:-1], [1], settings)
    state = fold(instance, [(0, 1, 2), (None, 1, 2)])
    assert result(instance, state) == 1 + 100 + 1970 + 3
    assert result(instance, instance.undo(state, 0, 1, 2)) == 101
    assert result(instance, instance.merge(state, state)) == 101 + 2 * 1973
    assert function.overloads[0].undoable


GROWS = """
        @udaf(params=("INT v",), returns="MAP<STRING, ARRAY<INT>>"{more})
        class Grows:
            def init(self):
                return {{"of": []}}
            def step(self, state, value):
                state["of"].append(value)
                return state
            def undo(self, state, value):
                state["of"].remove(value)
                return state
            def merge(self, state, later):
                state["of"].extend(later["of"])
                return state
        """


@pytest.mark.parametrize("in_place", [False, True])
def test_states_change_in_place_where_that_is_declared(in_place):
    function = one(GROWS.format(more=", in_place=True" if in_place else ""))
    instance = instantiate_aggregate(function, nth(function, 0), types_of("INT"))
    assert instance.in_place == (("step", "undo") if in_place else ())
    assert not instance.sure
    first = instance.init()
    second = instance.step(first, 1)
    assert first == {"of": [1] if in_place else []}
    shown = result(instance, second)
    third = instance.step(second, 2)
    assert (shown, third) == ({"of": [1]}, {"of": [1, 2]})
    kept = copy.deepcopy(third)
    assert instance.undo(third, 1) == {"of": [2]}
    assert (third == kept) is not in_place
    merged = instance.merge(first, kept)
    assert merged["of"][-2:] == [1, 2]
    assert first["of"] == ([2] if in_place else [])


KEEPS = """
        from collections import Counter, defaultdict

        @udaf(params=("INT v",), returns="INT")
        class Keeps:
            states = {{
                0: 1, 1: (1, (2, [3])), 2: {{"a": (1,), 2: {{}}}},
                3: Counter("a"), 4: dt.date(2026, 1, 1), 5: [{{"a": {{1, 2}}}}],
                6: {{dt.date(2026, 1, 1): 1}}, 7: {{(1, 2): 1}}, 8: [defaultdict(int)],
                9: Decimal("1.5"), 10: [None, True, 1.5, "a", b"b", 2**70],
            }}
            def init(self):
                return self.states[{first}]
            def step(self, state, value):
                return self.states[value]
            undo = step
            def merge(self, state, later):
                return self.states[later]
            def result(self, state):
                return 1
        """


@pytest.mark.parametrize(
    ("number", "restored"),
    [(0, 1), (1, [1, [2, [3]]]), (2, {"a": [1], 2: {}}), (9, D("1.5")),
     (10, [None, True, 1.5, "a", b"b", 2**70])],
)  # fmt: skip
def test_a_state_is_what_comes_back_from_where_it_is_stored(number, restored):
    keeps = one(KEEPS.format(first=number))
    instance = instantiate_aggregate(keeps, nth(keeps, 0), types_of("INT"))
    assert instance.init() == instance.step(0, number) == instance.undo(0, number) == restored
    assert instance.merge(0, number) == restored == unpack(pack(restored))


@pytest.mark.parametrize(
    ("number", "part"),
    [(3, "Counter"), (4, "date"), (5, "set"), (6, "date as a key"), (7, "tuple as a key"),
     (8, "defaultdict")],
)  # fmt: skip
def test_a_state_that_would_come_back_as_something_else_is_refused(number, part):
    keeps = one(KEEPS.format(first=number))
    instance = instantiate_aggregate(keeps, nth(keeps, 0), types_of("INT"))
    for change in (
        instance.init,
        lambda: instance.step(0, number),
        lambda: instance.merge(0, number),
    ):
        with pytest.raises(WrongState, match=f"the state of Keeps has a {part}; states are made"):
            change()


def test_a_subclass_of_an_aggregate_is_one_only_if_it_is_declared():
    subclasses = """
        class Quiet(Grows):
            pass
        @udaf(name="loud", params=("INT v",), returns="MAP<STRING, ARRAY<INT>>")
        class Loud(Grows):
            pass
    """
    base = textwrap.dedent(GROWS.format(more=""))
    functions, problems = loaded(base + textwrap.dedent(subclasses))
    assert not problems
    assert {name: len(f.overloads) for name, f in functions.items()} == {"GROWS": 1, "LOUD": 1}


def test_only_one_parameter_can_be_variadic():
    _, (problem,) = loaded(AGGREGATE)
    assert "variadic" in problem.message


def test_aggregate_without_options():
    function = one(
        """
        @udaf
        class Longest:
            def init(self) -> str:
                return ""
            def step(self, state: str, value: str | None) -> str:
                return max(state, value or "null", key=len)
            def merge(self, state: str, later: str) -> str:
                return max(state, later, key=len)
        """
    )
    instance = instantiate_aggregate(function, nth(function, 0), types_of("STRING"))
    assert not instance.skips_null
    assert instance.undo is None
    assert result(instance, fold(instance, ["a", None])) == "null"
    assert not function.overloads[0].undoable


def test_function_per_query():
    function = one(
        """
        @udf(params=("T x",), returns="STRING", per_query=True)
        def kind(types):
            calls = []
            def row(x):
                calls.append(x)
                return f"{types[0]} {len(calls)}"
            return row
        """
    )
    run = instantiate_scalar(function, nth(function, 0), types_of("INT"))
    assert [run.row(1), run.row(1)] == ["INTEGER 1", "INTEGER 2"]
    assert instantiate_scalar(function, nth(function, 0), types_of("STRING")).row("x") == "STRING 1"


def test_stacked_decorators_are_overloads():
    function = one(
        """
        @udf(params=("INT a",), returns="INT")
        @udf(params=("STRING a",), returns="STRING")
        def same(a):
            return a
        """
    )
    assert [str(v) for v in describe(function)] == ["SAME(a INT)", "SAME(a VARCHAR)"]


def load_directory(path):
    sources, unread = read_directory(path)
    functions, problems = load_sources(sources)
    return functions, [*unread, *problems]


def test_broken_files_are_reported(tmp_path):
    (tmp_path / "good.py").write_text(HEADER + "@udf\ndef good(x: int) -> int: return x\n")
    (tmp_path / "syntax.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "raises.py").write_text("x = 1\n\nraise RuntimeError('boom')\n")
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    (tmp_path / "_helper.py").write_text("raise RuntimeError('not read')\n")
    (tmp_path / "notes.txt").write_text("not Python")
    functions, problems = load_directory(tmp_path)
    assert [function.name for function in functions] == ["GOOD"]
    assert sorted(map(str, problems)) == [
        "bytes.py: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        "leaves.py, line 2: SystemExit: 3",
        "raises.py, line 3: RuntimeError: boom",
        "syntax.py, line 2: SyntaxError: invalid syntax (syntax.py, line 2)",
    ]
    assert load_directory(tmp_path / "none") == ([], [])


def test_kinds_cannot_be_mixed():
    text = """
    @udf(name="f")
    def a(x: int) -> int: ...
    @udtf(name="f")
    def b(x: int) -> list[int]: ...
    """
    functions, (problem,) = loaded(text)
    assert not functions
    assert str(problem) == "mine.py: f is declared as functions of several kinds"


def test_a_changed_text_is_another_module():
    text = "@udf\ndef f(x: int) -> int: return x + {}\n"
    first, again, other = (one(text.format(n)) for n in (1, 1, 2))
    assert called(first, "BIGINT", 1) == called(again, "BIGINT", 1) == 2
    assert called(other, "BIGINT", 1) == 3


def test_imported_functions_are_not_declared_twice():
    functions, problems = load_sources(
        {
            "a.py": HEADER + "@udf\ndef f(x: int) -> int: return x\n",
            "b.py": "from ksql.functions.udf import udf\n",
        }
    )
    assert not problems
    assert len(functions[0].overloads) == 1


def test_user_functions_join_the_registry():
    functions, _ = loaded("@udf\ndef mine(x: int) -> int: return x\n")
    wider = BUILTINS.with_(functions.values())
    assert wider.get("mine").category == "USER DEFINED"


# --- the functions of the test files ------------------------------------------------------


@pytest.fixture(scope="module")
def corpora():
    functions, problems = load_directory(CORPORA)
    assert not problems, problems[0]
    return {function.name: function for function in functions}


def test_corpora_scalars(corpora):
    test_udf = corpora["TEST_UDF"]
    assert called(test_udf, "INT; STRING", 1, None) == "doStuffIntString"
    assert called(test_udf, "BIGINT; NULL", 1, None) == "doStuffLongString"
    assert called(test_udf, "BIGINT; BIGINT; NULL", 1, 1, None) == "doStuffLongLongString"
    assert called(test_udf, "BIGINT; BIGINT", 1, 1) == "doStuffLongVarargs"
    assert called(test_udf, "STRUCT<A STRING>", {"A": "x"}) == "x"
    assert called(test_udf, "") == {"A": "foo"}
    bad = corpora["BAD_UDF"]
    for types, value in (("INT", 1), ("BOOLEAN", True)):
        with pytest.raises(RuntimeError):
            called(bad, types, value)
    assert called(bad, "BOOLEAN", False) == 0
    run = instantiate_scalar(
        bad, resolve_overload(bad, types_of("STRING")).overload, types_of("STRING")
    )
    assert [run.row("x") for _ in range(3)] == [None, "x", None]
    assert called(corpora["WHENCONDITION"], "BOOLEAN; BOOLEAN", False, True) is False
    assert called(corpora["WHENRESULT"], "INT; BOOLEAN", 5, True) == 5
    for name, types, value in (("WHENCONDITION", "BOOLEAN", True), ("WHENRESULT", "INT", 1)):
        with pytest.raises(RuntimeError):
            called(corpora[name], f"{types}; BOOLEAN", value, False)
    assert called(corpora["TOSTRUCT"], "STRING", "a") == {"A": "a"}


def test_corpora_tables(corpora):
    def rows(name, types, *args):
        function = corpora[name]
        chosen = resolve_overload(function, types_of(types))
        return instantiate_table(function, chosen.overload, chosen.params)(*args)

    kinds = ["INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING", "DECIMAL(20, 10)", "STRUCT<A STRING>"]
    values = [1, 2, 3.1, True, "foo", D("123.4560000000"), {"A": "bar"}]
    shown = ["1", "2", "3.1", "true", "foo", "123.4560000000", "Struct{A=bar}"]
    for kind, value in zip(kinds, values, strict=True):
        assert rows("TEST_UDTF", kind, value) == [value]
    assert rows("TEST_UDTF", "; ".join(kinds), *values) == shown
    arrays = [[value, None] for value in values]
    assert rows("TEST_UDTF", "; ".join(f"ARRAY<{k}>" for k in kinds), *arrays) == shown
    maps = [{"k": value} for value in values]
    assert rows("TEST_UDTF", "; ".join(f"MAP<STRING, {k}>" for k in kinds), *maps) == shown
    assert rows("THROWING_UDTF", "BOOLEAN", False) == [False]
    with pytest.raises(RuntimeError):
        rows("THROWING_UDTF", "BOOLEAN", True)


@pytest.mark.parametrize(
    ("name", "types", "constants", "rows", "expected"),
    [
        ("TEST_UDAF", "BIGINT", [], [1, 2], 3),
        ("TEST_UDAF", "INT", [], [1, 2], 13),
        ("TEST_UDAF", "DOUBLE", [], [0.5, 1.0], 1.5),
        ("TEST_UDAF", "STRING", ["abc"], ["de"], 5),
        ("TEST_UDAF", "STRUCT<A INT, B INT>", [], [{"A": 1, "B": 2}] * 2, {"A": 2, "B": 4}),
        ("MULTI_ARG", "BIGINT; STRING", [5, "10", "20", "3"], [(6, "hi"), (None, "hello")], 23),
        ("MULTI_ARG", "BIGINT; STRING", [5], [(6, "hi")], 13),
        ("FOUR_ARG", "BIGINT; STRING; STRING; STRING", [5], [(1, "a", None, "b")], 8),
        ("FIVE_ARG", "BIGINT; STRING; STRING; STRING; INT", [5, "1"], [(1, "a", "", "b", 2)], 11),
        ("VAR_ARG", "BIGINT; STRING; STRING", [], [(1, "a", None)], 2),
        ("MID_VAR_ARG", "BIGINT; STRING; STRING", [7, 3], [(6, "hi", "you")], 21),
        ("MID_VAR_ARG", "BIGINT", [7, 3], [6], 16),
        ("OBJ_COL_ARG", "INT; BOOLEAN; STRING", [], [(1, True, "x"), (2, None, "y")], [1]),
        ("GENERIC_VAR_ARG", "DECIMAL(5, 1); INT", [], [(D("6.1"), 5)], [D("6.1")]),
    ],
)
def test_corpora_aggregates(corpora, name, types, constants, rows, expected):
    function = corpora[name]
    kinds = [("INT" if isinstance(value, int) else "STRING") for value in constants]
    chosen = resolve_overload(function, [*types_of(types), *types_of("; ".join(kinds))])
    settings = {"ksql.functions.test_udaf.init": "10"}
    columns = chosen.params[: len(chosen.params) - len(constants)]
    instance = instantiate_aggregate(function, chosen.overload, columns, constants, settings)
    assert result(instance, fold(instance, rows)) == expected
    merged = instance.merge(fold(instance, rows[:1]), fold(instance, rows[1:]))
    assert result(instance, merged) == expected
    if instance.undo:
        state = instance.step(fold(instance, rows), rows[0])
        assert result(instance, instance.undo(state, rows[0])) == expected
