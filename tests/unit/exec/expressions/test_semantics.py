from __future__ import annotations

import math
from decimal import Decimal

import pytest

from tests.unit.exec.expressions.support import Odd, evaluate, functions, row, stage

BIG = 2**63 - 1
NAN = math.nan


@pytest.mark.parametrize(
    ("text", "values", "result"),
    [
        # arithmetic wraps, truncates, is exact
        ("i + 1", {"i": 2**31 - 1}, -(2**31)),
        ("i + l", {"i": 1, "l": BIG}, -(2**63)),
        ("l * l", {"l": BIG}, 1),
        ("i - j", {"i": -(2**31), "j": 1}, 2**31 - 1),
        ("-i", {"i": -(2**31)}, -(2**31)),
        ("-(-2147483648)", {}, -(2**31)),
        ("-(-9223372036854775808)", {}, -(2**63)),
        ("i / 2", {"i": -7}, -3),
        ("i / j", {"i": -7, "j": 2}, -3),
        ("i / -2", {"i": -7}, 3),
        ("i % 3", {"i": -7}, -1),
        ("i % j", {"i": 7, "j": -3}, 1),
        ("i / -1", {"i": -(2**31)}, -(2**31)),
        ("d / e", {"d": 1.0, "e": 0.0}, math.inf),
        ("d / e", {"d": -1.0, "e": 0.0}, -math.inf),
        ("d / e", {"d": 0.0, "e": 0.0}, NAN),
        ("d / 2", {"d": 3.0}, 1.5),
        ("d % e", {"d": -7.5, "e": 2.0}, -1.5),
        ("d * i", {"d": 1.5, "i": 2}, 3.0),
        ("dec + dec", {"dec": Decimal("10.01")}, Decimal("20.02")),
        ("dec * 2", {"dec": Decimal("10.01")}, Decimal("20.02")),
        ("dec / 2.00", {"dec": Decimal("10.10")}, Decimal("5.0500000")),
        ("dec + d", {"dec": Decimal("0.50"), "d": 1.0}, 1.5),
        ("-dec", {"dec": Decimal("10.12")}, Decimal("-10.12")),
        ("s + p", {"s": "a", "p": None}, "anull"),
        ("s + 'x'", {"s": None}, "nullx"),
        # comparisons are false with a NULL
        ("i = 1", {}, False),
        ("i <> 1", {}, False),
        ("NOT (i = 1)", {}, True),
        ("i = j", {}, False),
        ("i < j", {"i": 1}, False),
        ("i <= j", {"i": 1, "j": 1}, True),
        ("i IS DISTINCT FROM j", {}, False),
        ("i IS DISTINCT FROM j", {"i": 1}, True),
        ("i IS NOT DISTINCT FROM j", {"i": 1, "j": 1}, True),
        ("d = e", {"d": NAN, "e": NAN}, False),
        ("d <> e", {"d": NAN, "e": NAN}, False),
        ("d IS DISTINCT FROM e", {"d": NAN, "e": NAN}, False),
        ("d IS DISTINCT FROM e", {"d": NAN}, True),
        ("d = 1.1", {"d": 1.1}, True),
        ("dec = d", {"dec": Decimal("1.10"), "d": 1.1}, True),
        ("dec IS DISTINCT FROM d", {"dec": Decimal("1.10"), "d": 1.1}, False),
        ("dec IS DISTINCT FROM d", {"dec": Decimal("1.10")}, True),
        ("dec < i", {"dec": Decimal("10.01"), "i": 12}, True),
        ("dt > ts", {"dt": 10, "ts": 863999999}, True),
        ("ts > '1970-01-01T00:00:00.010'", {"ts": 11}, True),
        ("y < y", {"y": b"a"}, False),
        ("a = ARRAY[1, 2]", {"a": [1, 2]}, True),
        ("st = STRUCT(f := 1, g := 'x')", {"st": {"F": 1, "G": "x"}}, True),
        ("i BETWEEN 1 AND 3", {"i": 3}, True),
        ("i BETWEEN 1 AND 3", {}, False),
        ("LEN(s) BETWEEN 1 AND 3.5", {"s": "abc"}, True),
        # IN forgets NULLs
        ("i IN (1, NULL, j)", {"i": 2, "j": 2}, True),
        ("i NOT IN (1, NULL)", {"i": 2}, True),
        ("i NOT IN (1, 2)", {}, True),
        ("i IN (j)", {}, False),
        ("i IN (1.0, '2')", {"i": 2}, True),
        ("st IN (STRUCT(f := '7'))", {"st": {"F": 7, "G": None}}, True),
        # logic is lazy
        ("i = 1 OR FAIL(s) = 'x'", {"i": 1, "s": "s"}, True),
        ("i = 1 AND FAIL(s) = 'x'", {"i": 2, "s": "s"}, False),
        ("b OR i = 1", {"b": True}, True),
        ("i = 1 OR b", {"i": 1}, True),
        ("i IS NULL AND s IS NOT NULL", {"s": "x"}, True),
        # LIKE
        ("s LIKE 'a%'", {"s": "abc"}, True),
        ("s LIKE '%b_'", {"s": "abc"}, True),
        ("s LIKE 'b'", {"s": "abc"}, False),
        ("s LIKE 'a%'", {"s": "a\nb"}, False),
        ("s LIKE '!%' ESCAPE '!'", {"s": "%"}, True),
        ("s LIKE '!%' ESCAPE '!'", {"s": "x"}, False),
        ("s LIKE p", {"s": "f.o", "p": "f._"}, True),
        # CASE is lazy
        ("CASE WHEN i = 1 THEN FAIL(s) ELSE 'ok' END", {"i": 2, "s": "s"}, "ok"),
        ("CASE WHEN i = 1 THEN 'a' WHEN FAIL(s) = 'x' THEN 'b' END", {"i": 1, "s": "s"}, "a"),
        ("CASE i WHEN 1 THEN 'a' WHEN 2 THEN 'b' END", {"i": 2}, "b"),
        ("CASE i WHEN 1 THEN 'a' END", {}, None),
        ("CASE LEN(s) WHEN 1 THEN UCASE(UCASE(s)) ELSE s END", {"s": "a"}, "A"),
        # collections
        ("a[1]", {"a": [5, 6]}, 5),
        ("a[-1]", {"a": [5, 6]}, 6),
        ("a[0]", {"a": [5]}, None),
        ("a[3]", {"a": [5]}, None),
        ("a[i]", {"a": [5, 6], "i": 2}, 6),
        ("a[i]", {"i": 2}, None),
        ("a[1]", {}, None),
        ("m['x']", {"m": {"x": 1}}, 1),
        ("m['y']", {"m": {"x": 1}}, None),
        ("m['y']", {}, None),
        ("st->f", {"st": {"F": 1, "G": None}}, 1),
        ("st->f", {}, None),
        ("ARRAY[i, NULL, 3]", {"i": 1}, [1, None, 3]),
        ("MAP('a' := i, 'b' := 2)", {"i": 1}, {"a": 1, "b": 2}),
        ("STRUCT(x := i, `y` := s)", {"i": 1}, {"X": 1, "y": None}),
        # casts
        ("CAST(i AS STRING)", {"i": 5}, "5"),
        ("CAST(i AS STRING)", {}, None),
        ("CAST(b AS STRING)", {"b": True}, "true"),
        ("CAST(l AS INT)", {"l": 2**31}, -(2**31)),
        ("CAST(d AS STRING)", {"d": 1e10}, "1.0E10"),
        ("CAST(s AS INT) + 1", {"s": " 41 "}, 42),
        ("CAST(ts AS DATE)", {"ts": -2000}, -1),
        ("CAST(a AS ARRAY<STRING>)", {"a": [1, None]}, ["1", None]),
        ("CAST(NULL AS STRING)", {}, None),
        ("CAST(3 AS BIGINT) < i", {"i": 4}, True),
        ("CAST(3 AS BIGINT) IS NULL", {}, False),
        ("NULL IS NOT NULL", {}, False),
        ("i + 1 IS NULL", {"i": 1}, False),
        ("SAME(7) IS NULL", {}, False),
        # functions
        ("UCASE(s)", {"s": "x"}, "X"),
        ("UCASE(s)", {}, None),
        ("UCASE(NULL)", {}, None),
        ("JOINED(UCASE(s), UCASE(p))", {"s": "x", "p": "y"}, "XY"),
        ("JOINED(UCASE(s), UCASE(p))", {"s": "x"}, None),
        ("JOINED('a', 'b') IS NOT NULL", {}, True),
        ("JOINED(s, CAST(i + 1 AS STRING))", {"s": "x", "i": 1}, "x2"),
        ("COALESCE(s, p, 'z')", {"p": "p"}, "p"),
        ("ABS(-5)", {}, 5),
        ("PLUS(i, 2)", {"i": 1}, 3),
        ("TRANSFORM(a, x => x + i)", {"a": [1, 2], "i": 10}, [11, 12]),
        ("TRANSFORM(a, x => x > 1)", {"a": [1, None, 2]}, [False, False, True]),
        ("TRANSFORM(a, x => TRANSFORM(a, z => z * x))", {"a": [2, 3]}, [[4, 6], [6, 9]]),
        ("TRANSFORM(a, x => x BETWEEN i AND i + 1)", {"a": [1, 2, 3], "i": 2}, [False, True, True]),
        ("REDUCE(a, 0, (z, x) => ABS(ABS(x) - z))", {"a": [-1, 5]}, 4),
        ("TRANSFORM(a, x => 1)", {}, None),
    ],
)
def test_values(text, values, result):
    actual, errors = evaluate(text, **values)
    assert not errors
    assert actual == result or (actual != actual and result != result)  # NaN
    assert type(actual) is type(result)


@pytest.mark.parametrize(
    ("text", "values", "result", "errors"),
    [
        ("i + 1", {}, None, ["(I + 1): a NULL operand"]),
        ("-i", {}, None, ["-I: a NULL operand"]),
        ("d / e", {"d": 1.0}, None, ["(D / E): a NULL operand"]),
        ("d / e", {"d": 0.0}, None, ["(D / E): a NULL operand"]),
        ("d / e", {"e": 0.0}, None, ["(D / E): "]),
        ("d % e", {"d": math.inf}, None, ["(D % E): a NULL operand"]),
        ("d % e", {"e": 0.0}, None, ["(D % E): a NULL operand"]),
        ("i % 3", {}, None, ["(I % 3): a NULL operand"]),
        ("dec + dec", {}, None, ["(DEC + DEC): a NULL operand"]),
        ("i / j", {"i": 1, "j": 0}, None, ["(I / J): "]),
        ("dec / 3.00", {"dec": Decimal("1.00")}, None, ["(DEC / 3.00): "]),
        ("dec / 0", {"dec": Decimal("1.00")}, None, ["(DEC / 0): / by zero"]),
        ("dec % 0", {"dec": Decimal("1.00")}, None, ["(DEC % 0): the decimal operation has no"]),
        ("NOT b", {}, None, ["(NOT B): a NULL operand"]),
        ("b AND i = 1", {}, None, ["(B AND (I = 1)): a NULL operand"]),
        ("i = 1 OR b", {"i": 2}, None, ["((I = 1) OR B): a NULL operand"]),
        ("CASE WHEN b THEN 1 END", {}, None, ["a NULL operand"]),
        ("s LIKE 'a'", {}, None, ["(S LIKE 'a'): a NULL operand"]),
        ("s LIKE p", {"s": "x"}, None, ["(S LIKE P): a NULL operand"]),
        ("s LIKE p ESCAPE '!'", {"s": "x", "p": "x!"}, None, ["ends in its escape"]),
        ("s LIKE 'x!' ESCAPE '!'", {"s": "x"}, None, ["ends in its escape"]),
        ("a[i]", {"a": [1]}, None, ["A[I]: a NULL operand"]),
        ("ts > s", {"ts": 1, "s": "soon"}, None, ["is not a"]),
        ("PLUS(i, 2)", {}, None, ["must not be NULL"]),
        # the innermost guarded expression is the one that becomes NULL
        ("COALESCE(FAIL(s), 'z')", {"s": "s"}, "z", ["FAIL(S): bad s"]),
        ("FAIL(s) = 'x'", {"s": "s"}, None, ["(FAIL(S) = 'x'): bad s"]),
        ("ARRAY[FAIL(i), 2, i + j]", {"i": 1}, [None, 2, None], ["FAIL(I)", "(I + J)"]),
        ("MAP('a' := FAIL(i))", {"i": 1}, {"a": None}, ["FAIL(I)"]),
        ("STRUCT(x := FAIL(i))", {"i": 1}, {"X": None}, ["FAIL(I)"]),
        ("CAST(FAIL(i) AS STRING)", {"i": 1}, None, ["CAST(FAIL(I) AS STRING)"]),
        ("CAST(s AS INT) IN (1, 2)", {"s": "x"}, False, ["CAST(S AS INTEGER): "]),
        ("CAST(s AS INT) + 1", {"s": "x"}, None, ["CAST(S AS INTEGER): ", "+ 1): a NULL"]),
        ("UCASE(FAIL(s))", {"s": "s"}, None, ["FAIL(S): bad s"]),
        ("TRANSFORM(a, x => x + 5)", {"a": [5, None]}, None, ["TRANSFORM(A, "]),
        ("TRANSFORM(a, x => ABS(FAIL(x)))", {"a": [1, 2]}, [None, None], ["FAIL(X)"] * 2),
    ],
)
def test_errors(text, values, result, errors):
    actual, logged = evaluate(text, **values)
    assert actual == result
    assert len(logged) == len(errors)
    for message, part in zip(logged, errors, strict=True):
        assert message.startswith("Error computing expression ")
        assert part in message


def test_errors_may_spread_by_configuration():
    settings = {"ksql.nested.error.set.null": "false"}
    result, errors = evaluate("COALESCE(FAIL(s), 'z')", settings, s="s")
    assert result is None
    assert errors == ["Error computing expression COALESCE(FAIL(S), 'z'): bad s"]


def test_null_may_be_printed_by_configuration():
    settings = {"ksql.cast.strings.preserve.nulls": "false"}
    assert evaluate("CAST(i AS STRING)", settings) == ("null", [])
    assert evaluate("CAST(i AS BIGINT)", settings) == (None, [])


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("ODD(s)", 1),
        ("UCASE(ODD(s))", 1),
        ("ODD(s) BETWEEN 'a' AND 'c'", 1),
        ("ODD(s) IN ('a', 'b', 'c')", 1),
        ("CASE ODD(s) WHEN 'a' THEN 1 WHEN 'b' THEN 2 END", 1),
        ("JOINED(ODD(s), FAIL(s))", 1),
        ("CAST(ODD(s) AS INT)", 1),
        ("ODD(s) || ''", 1),
    ],
)
def test_functions_are_called_once_per_row(text, calls):
    odd = Odd()
    known = functions(odd)
    known = known.with_([f for f in known.all() if f.name == "ODD"])
    text = text.replace("ODD(s) || ''", "COALESCE(ODD(s), '')")
    evaluate(text, known=known, s="b")
    assert odd.calls == calls


def test_filter_and_project():
    projection = stage("i", "UCASE(s)", where="i > 1 AND s IS NOT NULL")
    rows = [row(i=i, s=s) for i, s in ((1, "a"), (2, "b"), (None, "c"), (3, None), (4, "d"))]
    kept = [None, (2, "B"), None, None, (4, "D")]
    assert projection.batch(rows, print) == kept
    assert [projection.run(each, print) for each in rows] == kept


def test_a_filter_that_fails_drops_the_row_and_says_so():
    seen = []
    projection = stage("i", where="NOT b")
    rows = [row(i=1), row(i=2, b=False)]
    assert projection.batch(rows, lambda *entry: seen.append(entry)) == [None, (2,)]
    assert seen == [("Q", "Error computing expression (NOT B): a NULL operand", rows[0])]


def test_a_null_condition_drops_the_row():
    assert stage("i", where="b").run(row(i=1), print) is None


def test_only_what_is_used_is_read():
    projection = stage("i", where="s = 'x'")
    assert "row[7]" in projection.text
    assert projection.text.index("c7 == 'x'") < projection.text.index("c1 = row[1]")
    assert stage("1").run((), print) == (1,)
