from __future__ import annotations

import pytest

from ksql.core.errors import ParseError
from ksql.sql.syntax import expr
from tests.parsing import parse

VARIABLES = {
    "name": "orders",
    "quoted": "`my Col`",
    "text": "'it''s'",
    "plain": "it's",
    "number": "-12",
    "decimal": "1.50",
    "double": "2E3",
    "flag": "true",
    "nothing": "NULL",
    "bad": "a b; DROP STREAM s",
}


def one(text, variables=VARIABLES):
    [parsed] = parse(text, variables=variables)
    return parsed.statement


def test_names():
    select = one("SELECT ${name}.${quoted} AS ${name}, a->${quoted} FROM ${name} x;")
    assert select.select[0].expr == expr.Ref("my Col", "ORDERS")
    assert select.select[0].alias == "ORDERS"
    assert select.select[1].expr == expr.Deref(expr.Ref("A"), "my Col")
    assert select.source.name == "ORDERS"
    created = one("CREATE STREAM ${name} (${quoted} INT) WITH (${name} = 1);")
    assert (created.name, created.columns[0].name) == ("ORDERS", "my Col")
    assert created.properties[0].name == "ORDERS"


@pytest.mark.parametrize(
    ("name", "literal"),
    [
        ("text", "'it''s'"),
        ("number", "-12"),
        ("decimal", "1.50"),
        ("double", "2E3"),
        ("flag", "TRUE"),
        ("nothing", "NULL"),
    ],
)
def test_literals(name, literal):
    assert one(f"SELECT ${{{name}}} FROM s;") == one(f"SELECT {literal} FROM s;")
    with_variable = one(f"CREATE STREAM s WITH (a = ${{{name}}});")
    assert with_variable == one(f"CREATE STREAM s WITH (a = {literal});")


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("SELECT ${name}, ${text} FROM s;", "SELECT orders, 'it''s' FROM s;"),
        ("SELECT '<${plain}>', '${none}' /* ${name} */ FROM s AS ${quoted};",
         "SELECT '<it''s>', '${none}' /* ${name} */ FROM s AS `my Col`;"),
        ("SELECT `${name}` FROM s;", "SELECT `${name}` FROM s;"),
        ("SELECT a -${number}-${number} FROM s;", "SELECT a - -12- -12 FROM s;"),
    ],
)  # fmt: skip
def test_the_text_of_a_statement_has_its_variables_replaced(text, replaced):
    parsed = parse(f"SHOW STREAMS;  {text} SHOW TABLES;", variables=VARIABLES)
    assert [each.text for each in parsed] == ["SHOW STREAMS;", replaced, "SHOW TABLES;"]


def test_the_text_stays_where_nothing_is_replaced():
    text = "SELECT '${name}' FROM s;"
    assert parse(text, variables=None)[0].text == text
    assert parse(text, variables={"other": "x"})[0].text == text


def test_a_name_where_a_column_may_stand():
    assert one("SELECT ${name} FROM s;") == one("SELECT ORDERS FROM s;")


def test_within_texts():
    select = one("SELECT '${plain} ${name} ${unknown}' FROM s;")
    assert select.select[0].expr == expr.StringLit("it's orders ${unknown}")
    assert one("DEFINE x = 'a-${name}';").value == "a-orders"
    assert one("SET '${name}' = '${number}';").value == "-12"
    assert one("PRINT '${name}';").topic == one("PRINT ${name};").topic == "orders"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM ${bad};",
        "SELECT ${bad} FROM s;",
        "SELECT * FROM ${unknown};",
        "SELECT ${unknown} FROM s;",
        "SELECT * FROM ${number};",
        "CREATE STREAM s WITH (a = ${name});",
        "CREATE STREAM s (a ${text});",
        "DEFINE 1x = 'a';",
    ],
)
def test_refused(text):
    with pytest.raises(ParseError) as caught:
        one(text)
    assert caught.value.text().startswith("line 1:")


def test_without_substitution():
    assert one("SELECT ${x} FROM s;", None).select[0].expr == expr.Variable("x")
    assert one("SELECT '${x}' FROM s;", None).select[0].expr == expr.StringLit("${x}")
    with pytest.raises(ParseError, match="disabled"):
        one("SELECT * FROM ${x};", None)


def test_overflow_is_found_in_the_text_of_a_variable():
    with pytest.raises(ParseError, match="Invalid numeric literal"):
        one("SELECT ${n} FROM s;", {"n": "9223372036854775808"})
