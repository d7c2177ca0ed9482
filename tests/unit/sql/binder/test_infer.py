from __future__ import annotations

import decimal

import pytest

from ksql.core.errors import KsqlError
from ksql.core.types import model
from ksql.core.types.model import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
)
from ksql.functions.registry import Functions
from ksql.functions.spec import AggregateFunction, Function, Scalar
from ksql.sql.binder import bound as b
from ksql.sql.binder import operators
from ksql.sql.binder.infer import bind, bind_predicate
from ksql.sql.binder.scope import Scope, Source
from tests.parsing import parse_expression

STRUCT = model.Struct((model.Field("F0", BIGINT), model.Field("f1", STRING)))
COLUMNS = {
    "B": BOOLEAN,
    "I": INTEGER,
    "L": BIGINT,
    "D": DOUBLE,
    "DEC": model.Decimal(4, 2),
    "S": STRING,
    "Y": BYTES,
    "DT": DATE,
    "TM": TIME,
    "TS": TIMESTAMP,
    "AI": model.Array(INTEGER),
    "AL": model.Array(BIGINT),
    "M": model.Map(STRING, BIGINT),
    "ST": STRUCT,
    "ROWTIME": BIGINT,
}
FUNCTIONS = Functions(
    [
        Function("UCASE", "SCALAR", "", "", (Scalar(("STRING",), "STRING", str.upper),)),
        Function(
            "HALF",
            "SCALAR",
            "",
            "",
            (Scalar(("BIGINT",), "BIGINT", lambda x: x // 2),),
        ),
        Function(
            "TRANSFORM",
            "SCALAR",
            "",
            "",
            (Scalar(("ARRAY<T>", "T => R"), "ARRAY<R>", lambda a, f: [f(x) for x in a]),),
        ),
        Function(
            "SUM",
            "AGGREGATE",
            "",
            "",
            (AggregateFunction(("BIGINT",), "BIGINT", init=int, step=lambda s, x: s + x),),
        ),
    ]
)


def scope(clause="SELECT", **more):
    return Scope((Source("T", COLUMNS),), clause, **more)


def bound(text, **more):
    return bind(parse_expression(text), scope(**more), FUNCTIONS)


def type_of(text):
    return b.type_of(bound(text))


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("i", "INTEGER"),
        ("t.i", "INTEGER"),
        ("2147483647", "INTEGER"),
        ("2147483648", "BIGINT"),
        ("-2147483648", "INTEGER"),
        ("-2147483649", "BIGINT"),
        ("1.50", "DECIMAL(3, 2)"),
        ("-0.8", "DECIMAL(2, 1)"),
        ("1E0", "DOUBLE"),
        ("-1E0", "DOUBLE"),
        ("'x'", "STRING"),
        ("i + l", "BIGINT"),
        ("i + i", "INTEGER"),
        ("i / d", "DOUBLE"),
        ("dec + dec", "DECIMAL(5, 2)"),
        ("dec + i", "DECIMAL(13, 2)"),
        ("dec * 1.5", "DECIMAL(7, 3)"),
        ("dec + d", "DOUBLE"),
        ("s + s", "STRING"),
        ("-dec", "DECIMAL(4, 2)"),
        ("-(-2147483648)", "INTEGER"),
        ("-(2147483648)", "BIGINT"),
        ("+i", "INTEGER"),
        ("i = 1", "BOOLEAN"),
        ("NOT b AND s IS NOT NULL", "BOOLEAN"),
        ("i IN (1, 2.5)", "BOOLEAN"),
        ("s LIKE '%a'", "BOOLEAN"),
        ("NULL IS NULL", "BOOLEAN"),
        ("CAST(i AS STRING)", "STRING"),
        ("CAST(NULL AS ARRAY<INT>)", "ARRAY<INTEGER>"),
        ("ai[1]", "INTEGER"),
        ("m['x']", "BIGINT"),
        ("st->f0", "BIGINT"),
        ("st->`f1`", "STRING"),
        ("ARRAY[i, l, 3]", "ARRAY<BIGINT>"),
        ("ARRAY[1, '2.5']", "ARRAY<DECIMAL(11, 1)>"),
        ("ARRAY['a', 1, 1.5, true]", "ARRAY<STRING>"),
        ("MAP('a' := i, 10 := NULL)", "MAP<STRING, INTEGER>"),
        ("STRUCT(a := i, `b` := s)", "STRUCT<`A` INTEGER, `b` STRING>"),
        (
            "ARRAY[NULL, STRUCT(x := i, y := l), STRUCT(y := i, z := l)]",
            "ARRAY<STRUCT<`X` INTEGER, `Y` BIGINT, `Z` BIGINT>>",
        ),
        ("ARRAY[1, '2147483648']", "ARRAY<BIGINT>"),
        ("ARRAY[1, '1e3']", "ARRAY<DOUBLE>"),
        ("ARRAY[1E0, dec]", "ARRAY<DOUBLE>"),
        ("ARRAY[ts, '2020']", "ARRAY<TIMESTAMP>"),
        ("ARRAY[ARRAY[1], al, ARRAY['2']]", "ARRAY<ARRAY<BIGINT>>"),
        ("ARRAY[m, MAP('x' := 1.5), MAP('y' := i)]", "ARRAY<MAP<STRING, DECIMAL(20, 1)>>"),
        ("ARRAY[st, st]", "ARRAY<STRUCT<`F0` BIGINT, `f1` STRING>>"),
        ("CASE WHEN b THEN 1 WHEN true THEN 2.5 ELSE 3E0 END", "DOUBLE"),
        ("CASE WHEN b THEN l ELSE 0 END", "BIGINT"),
        ("CASE WHEN b THEN 1 ELSE 2.5 END", "DECIMAL(11, 1)"),
        ("CASE WHEN b THEN 10.5 ELSE 1.25 END", "DECIMAL(4, 2)"),
        ("CASE WHEN b THEN NULL ELSE s END", "STRING"),
        ("CASE i WHEN 1 THEN 1.0 WHEN 2 THEN 2.55 END", "DECIMAL(3, 2)"),
        ("CASE WHEN b THEN dec ELSE 0 END", "DECIMAL(4, 2)"),
        ("HALF(i)", "BIGINT"),
        ("UCASE(NULL)", "STRING"),
        ("TRANSFORM(ai, x => x + l)", "ARRAY<BIGINT>"),
        ("TRANSFORM(ai, x => TRANSFORM(al, w => w = x))", "ARRAY<ARRAY<BOOLEAN>>"),
    ],
)
def test_types(text, type_):
    assert str(type_of(text)) == type_


def test_conversions_are_explicit():
    assert bound("i + l") == b.Arith(
        "+", b.Cast(b.Column("I", INTEGER), BIGINT, implicit=True), b.Column("L", BIGINT), BIGINT
    )
    assert bound("d > 2.0") == b.Compare(">", b.Column("D", DOUBLE), b.Const(2.0, DOUBLE))
    assert bound("l = 1.5").right == b.Const(decimal.Decimal("1.5"), model.Decimal(2, 1))
    assert bound("UCASE(NULL)").args == (b.Const(None, STRING),)
    assert bound("HALF(1)").args == (b.Const(1, BIGINT),)
    assert bound("CAST(s AS INT)") == b.Cast(b.Column("S", STRING), INTEGER)
    assert bound("CAST(s AS STRING)") == b.Column("S", STRING)


@pytest.mark.parametrize("text", ["ARRAY[1, 2.50, i]", "MAP('a' := 1, 'b' := 2.50, 'c' := i)"])
def test_integers_among_decimals_have_no_places(text):
    expression = bound(text)
    one, half, column = expression.items if "ARRAY" in text else [v for _, v in expression.entries]
    assert one == b.Const(decimal.Decimal(1), model.Decimal(10, 0))
    assert str(half.value) == "2.50"
    assert column == b.Cast(b.Column("I", INTEGER), model.Decimal(10, 0), implicit=True)


def test_doubles_and_decimals_stay_apart_where_a_double_would_be_wrong():
    many = "0.10000000000000000001"
    assert isinstance(bound(f"d = {many}").right.value, decimal.Decimal)


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("dt > ts", (TIMESTAMP, TIMESTAMP)),
        ("dt = '1970-01-11'", (DATE, DATE)),
        ("dt > '1970-01-11T05:00'", (TIMESTAMP, TIMESTAMP)),
        ("dt = s", (TIMESTAMP, TIMESTAMP)),
        ("'00:00:01' < tm", (TIME, TIME)),
        ("ts >= '2020'", (TIMESTAMP, TIMESTAMP)),
        ("i < d", (DOUBLE, DOUBLE)),
        ("i < l", (INTEGER, BIGINT)),
        ("y < y", (BYTES, BYTES)),
        ("ai = al", (model.Array(INTEGER), model.Array(BIGINT))),
        ("dec = d", (model.Decimal(4, 2), DOUBLE)),
    ],
)
def test_comparisons(text, types):
    expression = bound(text)
    assert (b.type_of(expression.left), b.type_of(expression.right)) == types


def test_texts_next_to_rowtime_are_instants():
    assert bound("ROWTIME > '2020'").right == b.Const(1577836800000, BIGINT)
    assert bound("'2020' < t.ROWTIME").left == b.Const(1577836800000, BIGINT)
    between = bound("ROWTIME BETWEEN '1970' AND '1970-01-02'")
    assert between.right.right == b.Const(86400000, INTEGER)
    with pytest.raises(KsqlError, match="Failed to parse timestamp 'soon'"):
        bound("ROWTIME > 'soon'")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CAST(s AS TIMESTAMP) > '2026-13-45'", "timestamp '2026-13-45'"),
        ("CAST(s AS TIMESTAMP) BETWEEN 'hello' AND '2026'", "timestamp 'hello'"),
        ("'hello' <> CAST(s AS DATE)", "date 'hello'"),
        ("CAST(s AS TIME) <= 'noon'", "time 'noon'"),
    ],
)
def test_a_text_next_to_a_time_must_be_one(text, message):
    with pytest.raises(KsqlError, match=f"Failed to parse {message}"):
        bound(text)


def test_between_evaluates_its_operand_once():
    expression = bound("HALF(i) BETWEEN 1 AND 2")
    assert isinstance(expression, b.Let)
    name = b.LambdaVar(expression.name, BIGINT)
    assert expression.body == b.Logical(
        "AND",
        b.Compare(">=", name, b.Const(1, INTEGER)),
        b.Compare("<=", name, b.Const(2, INTEGER)),
    )
    assert isinstance(bound("i BETWEEN 1 AND 2"), b.Logical)
    assert isinstance(bound("CASE HALF(i) WHEN 1 THEN 2 WHEN 2 THEN 3 END"), b.Let)


def test_in_drops_nulls_and_converts_literals():
    expression = bound("l IN (1, NULL, '3', 4.0)")
    assert b.type_of(expression.operand) == model.Decimal(20, 1)
    values = [option.value for option in expression.options]
    assert values == [1, 3, 4]
    assert bound("NULL IN (NULL)") == b.Const(False, BOOLEAN)
    assert [o.value for o in bound("b IN ('TrUe', 'n')").options] == [True, False]


def test_struct_literals_take_the_fields_of_their_neighbours():
    expression = bound("st IN (STRUCT(F0 := '7'), STRUCT(`f1` := 'x', c := 1))")
    wide = model.Struct((*STRUCT.fields, model.Field("C", INTEGER)))
    assert expression.operand == b.Cast(b.Column("ST", STRUCT), wide, implicit=True)
    assert expression.options[0].fields == (
        ("F0", b.Const(7, BIGINT)),
        ("f1", b.Const(None, STRING)),
        ("C", b.Const(None, INTEGER)),
    )


@pytest.mark.parametrize("odd", [0, 1, 700, 998])
def test_the_odd_one_of_a_thousand_results_is_seen_in_few_looks(odd, monkeypatch):
    agree, looks = operators._agree, []

    def looked(some):
        looks.append(len(some))
        return agree(some)

    monkeypatch.setattr(operators, "_agree", looked)
    results = [b.Const(1, INTEGER)] * 999
    results[odd] = b.Const("x", STRING)
    assert operators._agreeing(results) == max(odd, 1)
    assert len(looks) <= 12


LINK = "(see https://github.com/confluentinc/ksql/issues/4239)."
LINKED = f"{LINK} As a workaround"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bob", "SELECT column 'BOB' cannot be resolved."),
        ("t.bob", "SELECT column 'T.BOB' cannot be resolved."),
        ("u.i", "'U' is not a valid stream/table name or alias."),
        ("NOFN(i)", "Can't find any functions with the name 'NOFN'"),
        ("UCASE(i)", "does not accept parameters (INTEGER)"),
        ("SUM(l)", "SUM is an aggregate function"),
        ("ai < al", "Cannot compare AI (ARRAY<INTEGER>) to AL (ARRAY<BIGINT>) with LESS_THAN."),
        ("i >= 'x'", "Cannot compare I (INTEGER) to 'x' (STRING) with GREATER_THAN_OR_EQUAL."),
        ("b < true", "Cannot compare B (BOOLEAN) to true (BOOLEAN) with LESS_THAN."),
        ("y = s", "Cannot compare Y (BYTES) to S (STRING) with EQUAL."),
        ("tm = ts", "Cannot compare TM (TIME) to TS (TIMESTAMP) with EQUAL."),
        ("i IS DISTINCT FROM s", "with IS_DISTINCT_FROM."),
        ("i = NULL", "Comparison with NULL not supported: INTEGER = NULL"),
        ("NULL BETWEEN 1 AND 2", "Comparison with NULL not supported: NULL >= INTEGER"),
        (
            "1 + NULL",
            "Error processing expression: (1 + null). "
            "Arithmetic on types INTEGER and null are not supported.",
        ),
        ("s - s", "Arithmetic on types STRING and STRING are not supported."),
        ("b + 1", "Unsupported arithmetic types. BOOLEAN INTEGER"),
        ("dec * b", "Unsupported arithmetic types. DECIMAL BOOLEAN"),
        ("ai % st", "Unsupported arithmetic types. ARRAY STRUCT"),
        ("s + 1", "Arithmetic on types STRING and INTEGER are not supported."),
        ("-s", "Arithmetic on type STRING is not supported."),
        ("b AND i", "AND needs conditions, but I is INTEGER."),
        ("NOT s", "NOT needs conditions, but S is STRING."),
        ("i LIKE 'x'", "Like condition must be between strings"),
        ("CAST(s AS ARRAY<INT>)", "Invalid Select: Cast of STRING to ARRAY<INTEGER> is not"),
        ("CAST(al AS ARRAY<BOOLEAN>)", "Invalid Select: Cast of BIGINT to BOOLEAN is not"),
        ("CAST(st AS STRUCT<f0 DATE>)", "Invalid Select: Cast of BIGINT to DATE is not"),
        ("s[1]", "applies only to ARRAY and MAP, not to STRING."),
        ("st['F0']", "does not apply to STRUCT."),
        ("ai['x']", "The index of an array must be an integer"),
        ("m[1]", "The key of this map must be STRING"),
        ("st->nope", "Could not find field 'NOPE' in 'ST'."),
        ("i->f0", "Expected STRUCT type, got: INTEGER"),
        ("ARRAY[NULL]", f"Cannot construct an array with all NULL elements {LINKED}"),
        ("MAP(NULL := 1)", f"Cannot construct a map with all NULL keys {LINKED}"),
        ("MAP(NULL := 1)", "As a workaround, you may cast a NULL key to the desired type."),
        ("MAP('a' := NULL)", f"Cannot construct a map with all NULL values {LINKED}"),
        ("STRUCT(a := 1, a := b)", "found in STRUCT: '`A` INTEGER' and '`A` BOOLEAN'"),
        ("ARRAY[1, 'no number']", 'invalid input syntax for type INTEGER: "no number"'),
        ("al IN (ARRAY['x'])", "not exist: ARRAY<BIGINT> = ARRAY<STRING> (ARRAY['x'])"),
        ("al IN (ARRAY[1], ARRAY['2', 'x'])", "BIGINT> = ARRAY<STRING> (ARRAY['2', 'x'])"),
        ("st IN (STRUCT(F0 := 'x'))", "STRUCT<`F0` STRING> (STRUCT(F0:='x'))"),
        ("al IN (ARRAY['x'])", 'invalid input syntax for type BIGINT: "x"'),
        ("ARRAY[b, 'maybe']", 'invalid input syntax for type BOOLEAN: "maybe"'),
        ("b IN (true, s)", "operator does not exist: BOOLEAN = STRING (S)"),
        ("l IN (10, true)", "operator does not exist: BIGINT = BOOLEAN (true)"),
        ("dec IN (10, s)", "operator does not exist: DECIMAL(12, 2) = STRING (S)"),
        ("s IN (10, d)", "operator does not exist: STRING = DOUBLE (D)"),
        ("al IN (al, ARRAY[b])", "not exist: ARRAY<BIGINT> = ARRAY<BOOLEAN> (ARRAY[B])"),
        ("m IN (MAP('a' := b))", "MAP<STRING, BIGINT> = MAP<STRING, BOOLEAN> (MAP('a':=B))"),
        (
            "CASE WHEN b THEN s WHEN b THEN i END",
            "Type for all 'THEN' clauses should be the same.\n"
            "THEN expression 'WHEN B THEN I' has type: INTEGER.\n"
            "Previous THEN expression(s) type: STRING.",
        ),
        (
            "CASE WHEN b THEN 'x' WHEN b THEN i ELSE 'y' END",
            "THEN expression 'WHEN B THEN I' has type: INTEGER.\n"
            "Previous THEN expression(s) type: STRING.",
        ),
        (
            "CASE WHEN b THEN NULL WHEN b THEN 1 WHEN b THEN 2.5 WHEN b THEN s END",
            "THEN expression 'WHEN B THEN S' has type: STRING.\n"
            "Previous THEN expression(s) type: DECIMAL(11, 1).",
        ),
        ("CASE WHEN b THEN 'x' ELSE i END", "THEN type: STRING.\nDEFAULT type: INTEGER."),
        ("CASE WHEN b THEN NULL END", "Invalid Case expression. All case branches have NULL type"),
        ("CASE WHEN b THEN i ELSE l END", "THEN type: INTEGER.\nDEFAULT type: BIGINT."),
        (
            "CASE WHEN b THEN dec ELSE 0.005 END",
            "THEN type: DECIMAL(4, 2).\nDEFAULT type: DECIMAL(4, 3).",
        ),
        ("CASE WHEN b THEN dec ELSE 100 END", "THEN type: DECIMAL(4, 2).\nDEFAULT type: INTEGER."),
        ("CASE WHEN b THEN s ELSE 1 END", "THEN type: STRING.\nDEFAULT type: INTEGER."),
        ("ARRAY[ts, 'soon']", 'invalid input syntax for type TIMESTAMP: "soon"'),
        ("ARRAY[st, m]", "operator does not exist: STRUCT<`F0` BIGINT, `f1` STRING> = MAP"),
        ("TRANSFORM(ai, (x, z, v, w) => x)", "A lambda has at most 3 arguments"),
        ("ARRAY[]", f"constructor cannot be empty. Please supply at least one element {LINK}"),
        ("MAP()", "Map constructor cannot be empty. Please supply at least one key value pair"),
        ("CASE WHEN i THEN 1 END", "WHEN operand type should be boolean.\nType for 'I' is INTEGER"),
        (
            "TRANSFORM(ai, i => i)",
            "Exception while preparing statement: Lambda function argument can't be a column "
            "name: I",
        ),
        (
            "TRANSFORM(ai, x => TRANSFORM(al, x => x))",
            "Exception while preparing statement: Reusing lambda arguments in nested lambda is "
            "not allowed: X",
        ),
        (
            "TRANSFORM(ai, (x, x) => x)",
            "Exception while preparing statement: Duplicate lambda argument: X",
        ),
        ("TRANSFORM(ai, `x y` => 1)", "Lambda arguments must be valid java identifiers: x y"),
        ("TRANSFORM(ai, `1x` => 1)", "Lambda arguments must be valid java identifiers: 1x"),
        ("TRANSFORM(ai, x => z)", "SELECT column 'Z' cannot be resolved."),
        ("TRANSFORM(ai, (x, z) => x)", "does not accept parameters (ARRAY<INTEGER>, LAMBDA)"),
    ],
)  # fmt: skip
def test_refused(text, message):
    with pytest.raises(KsqlError) as error:
        bound(text)
    assert message in error.value.text()


def test_the_clause_is_named():
    for text, message in [
        ("bob = 1", "WHERE column 'BOB' cannot be resolved."),
        ("i > 'x'", "Error in WHERE expression: Cannot compare I (INTEGER)"),
        ("i = null", "\nStatement: (I = null)"),
        ("l IN (b)", "Invalid Predicate: operator does not exist: BIGINT = BOOLEAN (B)"),
        ("'no'", "Type error in WHERE expression: Should evaluate to boolean but is 'no' (STRING)"),
        ("i + 1.5", "but is (I + 1.5) (DECIMAL(12, 1)) instead."),
    ]:
        with pytest.raises(KsqlError) as error:
            bind_predicate(parse_expression(text), scope("WHERE"), FUNCTIONS)
        assert message in error.value.text()


def test_intercepted_expressions_are_not_bound():
    column = b.Column("KSQL_AGG_0", BIGINT)
    call = parse_expression("SUM(l)")
    expression = bound("SUM(l) + 1", intercept=lambda node: column if node == call else None)
    assert expression.left == column
