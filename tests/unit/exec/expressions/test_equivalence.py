"""Compiled code equals a plain walk over the expression, on any expression and any row."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksql.exec.expressions.compile import compile_expr, compile_predicate, compile_projection
from ksql.exec.expressions.errors import TooDeep
from ksql.functions.registry import BUILTINS
from ksql.functions.resolve import parameters, spread
from ksql.sql.binder.infer import bind
from ksql.sql.binder.show import sql_of
from tests.examples import examples
from tests.parsing import parse_expression
from tests.unit.exec.expressions.interpreter import Interpreter
from tests.unit.exec.expressions.support import COLUMNS, SCOPE, functions, row

KNOWN = functions()
EDGES = (-(2**63), -(2**31), -1, 0, 1, 2, 2**31 - 1, 2**63 - 1)


def null_or(strategy):
    return st.none() | strategy


INT = st.integers(-(2**31), 2**31 - 1) | st.sampled_from((-(2**31), -1, 0, 1, 2, 2**31 - 1))
LONG = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(EDGES)
TEXT = st.sampled_from(("", "a", "b", "ab", "12", "-3", "%", "true"))
ROWS = st.builds(
    row,
    b=null_or(st.booleans()),
    i=null_or(INT),
    j=null_or(INT),
    l=null_or(LONG),
    d=null_or(st.floats() | st.sampled_from((0.0, -0.0, 1.5))),
    e=null_or(st.floats(allow_nan=False) | st.just(1.1)),
    dec=null_or(st.decimals(-99, 99, places=2)),
    s=null_or(TEXT),
    p=null_or(TEXT),
    a=null_or(st.lists(null_or(INT), max_size=3)),
    m=null_or(st.dictionaries(TEXT, null_or(LONG), max_size=3)),
    st=null_or(st.fixed_dictionaries({"F": null_or(INT), "G": null_or(TEXT)})),
)


def template(text, *parts):
    return st.builds(text.format, *parts)


def exprs(depth):
    """Texts of expressions by their kind."""
    if depth == 0:
        return {
            "int": st.sampled_from(
                ("i", "j", "3", "-1", "st->f", "a[1]", "a[-2]", "CAST(s AS INT)")
            ),
            "long": st.sampled_from(("l", "9223372036854775807", "m['a']", "m[s]", "l")),
            "double": st.sampled_from(("d", "e", "1.5E0", "0E0")),
            "decimal": st.sampled_from(("dec", "1.1", "0.00")),
            "text": st.sampled_from(("s", "p", "'a'", "st->g")),
            "bool": st.sampled_from(("b", "true", "i = 1", "s IS NULL")),
            "ints": st.sampled_from(("a", "ARRAY[1, i]")),
        }
    e = exprs(depth - 1)
    number = e["int"] | e["long"] | e["double"] | e["decimal"]
    op, cmp = st.sampled_from("+-*/%"), st.sampled_from(("=", "<>", "<", "<=", ">", ">="))
    distinct = st.sampled_from(("IS DISTINCT FROM", "IS NOT DISTINCT FROM", "="))
    logic = st.sampled_from(("AND", "OR"))
    step = f"(v{depth}, w{depth}) => v{depth} + w{depth} * {{}}"
    return {
        "int": e["int"]
        | template("({} {} {})", e["int"], op, e["int"])
        | template("-({})", e["int"])
        | template("LEN({})", e["text"])
        | template("ABS(FAIL({}))", e["int"])
        | template("PLUS({}, {})", e["int"], e["int"])
        | template("CASE WHEN {} THEN {} ELSE {} END", e["bool"], e["int"], e["int"])
        | template("({})[{}]", e["ints"], e["int"])
        | template("COALESCE({}, {})", e["int"], e["int"])
        | template(f"REDUCE({{}}, {{}}, {step})", e["ints"], e["int"], e["int"]),
        "long": e["long"]
        | template("({} {} {})", e["long"], op, e["int"] | e["long"])
        | template("CAST({} AS BIGINT)", e["int"] | e["text"] | e["double"] | e["decimal"])
        | template("MAP('a' := {})[{}]", e["long"], e["text"]),
        "double": e["double"]
        | template("({} {} {})", e["double"], st.sampled_from("+-*/"), number)
        | template("-({})", e["double"]),
        "decimal": e["decimal"]
        | template("({} {} {})", e["decimal"], op, e["decimal"] | e["int"])
        | template("CAST({} AS DECIMAL(6, 2))", e["text"] | e["int"] | e["decimal"]),
        "text": e["text"]
        | template("UCASE({})", e["text"])
        | template("({} + {})", e["text"], e["text"])
        | template("JOINED({}, {})", e["text"], e["text"])
        | template("UCASE(FAIL({}))", e["text"])
        | template("CAST({} AS STRING)", e["int"] | e["bool"] | e["decimal"])
        | template("CASE {} WHEN {} THEN {} END", e["int"], e["long"], e["text"])
        | template("STRUCT(x := {}, y := {})->x", e["text"], e["int"]),
        "bool": e["bool"]
        | template("({} {} {})", number, cmp, number)
        | template("({} {} {})", number, distinct, number)
        | template("({} {} {})", e["text"], cmp, e["text"])
        | template("({} {} {})", e["bool"], logic, e["bool"])
        | template("(NOT {})", e["bool"])
        | template("({} BETWEEN {} AND {})", number, number, number)
        | template("({} IN ({}, NULL, 2))", e["int"], e["int"])
        | template("({} LIKE {})", e["text"], e["text"])
        | template("({} IS NOT NULL)", number | e["text"]),
        "ints": e["ints"]
        | template("ARRAY[{}, {}]", e["int"], e["int"])
        | template(f"TRANSFORM({{}}, q{depth} => q{depth} + {{}})", e["ints"], e["int"])
        | template(f"TRANSFORM({{}}, r{depth} => ABS(FAIL(r{depth})))", e["ints"]),
    }


KINDS = exprs(3)
ANY = st.one_of(*KINDS.values())


def same(x, y):
    if isinstance(x, list):
        return isinstance(y, list) and len(x) == len(y) and all(map(same, x, y))
    if isinstance(x, Decimal):
        return x == y and x.as_tuple().exponent == y.as_tuple().exponent
    return type(x) is type(y) and (x == y or (x != x and y != y))


@settings(max_examples=examples(100), deadline=None)
@given(ANY, st.lists(ROWS, min_size=1, max_size=5))
def test_expressions(text, rows):
    bound = bind(parse_expression(text), SCOPE, KNOWN)
    projection = compile_projection(list(COLUMNS), None, [bound], KNOWN, {}, "Q")
    reference = Interpreter(COLUMNS, KNOWN)
    logged = []

    def log(_context, message, _row):
        logged.append(message)

    expected = [reference.run(bound, each) for each in rows]
    batch = projection.batch(rows, log)
    for (result,), reference_ in zip(batch, expected, strict=True):
        assert same(result, reference_), (projection.text, result, reference_)
    assert all(
        same((projection.run(each, print_nothing) or ("filtered",))[0], reference_)
        for each, reference_ in zip(rows, expected, strict=True)
    )
    # Guarded operands are evaluated first: what fails beside them does not hide their failures.
    assert bool(logged) is bool(reference.errors)
    for node, count in Counter(map(sql_of, reference.errors)).items():
        start = f"Error computing expression {node}: "
        assert sum(message.startswith(start) for message in logged) >= count


@settings(max_examples=examples(40), deadline=None)
@given(KINDS["bool"], ANY, st.lists(ROWS, max_size=5))
def test_filters(condition, text, rows):
    where = bind(parse_expression(condition), SCOPE, KNOWN)
    output = bind(parse_expression(text), SCOPE, KNOWN)
    columns = list(COLUMNS)
    filter_ = compile_projection(columns, where, [output], KNOWN, {}, "Q")
    keep = compile_predicate(columns, where, KNOWN, {}, "Q")
    value = compile_expr(columns, output, KNOWN, {}, "Q")
    reference = Interpreter(COLUMNS, KNOWN)
    for each, result in zip(rows, filter_.batch(rows, print_nothing), strict=True):
        passes = reference.run(where, each) is True
        assert keep(each, print_nothing) is passes
        assert (result is not None) is passes
        assert result is None or same(result[0], value(each, print_nothing))


REAL = BUILTINS.with_(KNOWN.get(name) for name in ("FAIL", "PLUS", "JOINED"))
SHALLOW = exprs(2)


def either(column):
    """A column, or an expression that is more than a name."""
    return st.just(column) | template(f"CASE WHEN {{}} THEN {column} END", SHALLOW["bool"])


ARGUMENTS = {
    "INT": SHALLOW["int"],
    "BIGINT": SHALLOW["long"],
    "DOUBLE": SHALLOW["double"],
    "DECIMAL": SHALLOW["decimal"],
    "VARCHAR": SHALLOW["text"],
    "BOOLEAN": SHALLOW["bool"],
    "BYTES": either("y"),
    "DATE": either("dt"),
    "TIME": either("tm"),
    "TIMESTAMP": either("ts"),
    "INTERVALUNIT": st.sampled_from(("DAYS", "SECONDS")),
    "T": SHALLOW["int"],
    "ARRAY<T>": SHALLOW["ints"],
    "ARRAY<VARCHAR>": template("ARRAY[{}, {}]", SHALLOW["text"], SHALLOW["text"]),
    "MAP<VARCHAR, T>": either("m") | template("MAP('a' := {})", SHALLOW["long"]),
}
IMPURE = ("UUID", "RANDOM", "UNIX_DATE", "UNIX_TIMESTAMP")
MAYBE_HUGE = ("LPAD", "RPAD", "GENERATE_SERIES")


def calls():
    """Overloads whose arguments can be made, with what makes them."""
    for function in BUILTINS.all():
        if function.kind != "SCALAR" or function.name in (*IMPURE, *MAYBE_HUGE):
            continue
        for index, overload in enumerate(function.overloads):
            declared = parameters(overload)
            count = len(declared) + 2 * any(param.variadic for param in declared)
            kinds = [str(param.pattern) for param in spread(declared, count)]
            if all(kind in ARGUMENTS for kind in kinds):
                yield pytest.param(function, kinds, id=f"{function.name}-{index}")


@pytest.mark.slow
@pytest.mark.parametrize(("function", "kinds"), list(calls()))
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_built_in_functions(function, kinds, data):
    """A call of any function, its arguments any expressions, alone and where it is lazy."""
    call = f"{function.name}({', '.join(data.draw(ARGUMENTS[kind]) for kind in kinds)})"
    where = data.draw(st.sampled_from(("{}", "CASE WHEN b THEN {} END", "TRANSFORM(a, v => {})")))
    bound = bind(parse_expression(where.format(call)), SCOPE, REAL)
    compiled = compile_expr(list(COLUMNS), bound, REAL, {}, "Q")
    reference = Interpreter(COLUMNS, REAL)
    for each in data.draw(st.lists(ROWS, min_size=1, max_size=3)):
        assert same(compiled(each, print_nothing), reference.run(bound, each))


def print_nothing(*_entry):
    return None


def evaluated(text, **values):
    bound = bind(parse_expression(text), SCOPE, KNOWN)
    return compile_expr(list(COLUMNS), bound, KNOWN, {}, "Q")(row(**values), print_nothing)


def test_long_chains():
    assert evaluated(" + ".join(["i"] * 90), i=1) == 90
    assert evaluated(" + ".join(["d"] * 90), d=1.0) == 90.0
    assert evaluated(" AND ".join(["UCASE(s) = 'A'"] * 90), s="a") is True
    assert evaluated(" OR ".join(["LEN(UCASE(s)) = 2"] * 90), s="a") is False
    whens = " ".join(f"WHEN LEN(UCASE(s)) = {n} THEN {n}" for n in range(2, 200))
    assert evaluated(f"CASE {whens} ELSE 0 END", s="a") == 0


@pytest.mark.parametrize("depth", [10, 30])
def test_deep_nesting(depth):
    text = "s"
    for _ in range(depth):
        text = f"CASE WHEN LEN(UCASE(s)) = 2 THEN 'x' ELSE UCASE(UCASE({text})) END"
    assert evaluated(text, s="a") == "A"
    text = "s"
    for _ in range(depth):
        text = f"UCASE({text})"
    assert evaluated(text, s="a") == "A"
    text = "a"
    for n in range(depth):
        text = f"TRANSFORM({text}, x{n} => x{n} + 1)"
    assert evaluated(text, a=[0]) == [depth]


def test_too_deep_nesting_is_refused():
    bound: Any = bind(parse_expression("s"), SCOPE, KNOWN)
    call: Any = bind(parse_expression("UCASE(s)"), SCOPE, KNOWN)
    for _ in range(5000):
        bound = type(call)(call.function, call.overload, (bound,), call.type)
    with pytest.raises(TooDeep, match="nested too deeply"):
        compile_expr(list(COLUMNS), bound, KNOWN, {}, "Q")
