from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksql.core.errors import KsqlError, ParseError, Span
from ksql.core.ident import RESERVED
from ksql.core.types import model
from ksql.sql.syntax import ast, expr
from ksql.sql.syntax.parser import parse_one, split
from tests.parsing import parse, parse_expression, parse_type

NON_RESERVED = [
    "SHOW",
    "TABLES",
    "COLUMNS",
    "COLUMN",
    "PARTITIONS",
    "FUNCTIONS",
    "FUNCTION",
    "SESSION",
    "STRUCT",
    "MAP",
    "ARRAY",
    "PARTITION",
    "INTEGER",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "INTERVAL",
    "ZONE",
    "STRING",
    "YEAR",
    "MONTH",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "EXPLAIN",
    "ANALYZE",
    "TYPE",
    "TYPES",
    "SET",
    "RESET",
    "IF",
    "SOURCE",
    "SINK",
    "PRIMARY",
    "KEY",
    "EMIT",
    "CHANGES",
    "FINAL",
    "ESCAPE",
    "REPLACE",
    "ASSERT",
    "ALTER",
    "ADD",
    "HEADER",
    "HEADERS",
    "GRACE",
    "PERIOD",
    "DEFINE",
    "UNDEFINE",
    "VARIABLES",
    "PLUGINS",
    "SYSTEM",
    "TIMEOUT",
    "SCHEMA",
    "SUBJECT",
    "ID",
    "ABORT",
    "ROLLBACK",
    "UPGRADE",
    "UPGRADES",
    "OF",
    "FOR",
]


def one(text, **settings_):
    [parsed] = parse(text, **settings_)
    return parsed.statement


def refused(text, **settings_):
    with pytest.raises(KsqlError) as caught:
        parse(text, **settings_)
    return caught.value


# --- scripts


def test_split_minds_quotes_and_comments():
    script = """
    -- first; not the end
    SELECT ';' FROM "a;b" /* ; */ WHERE `c;` = 1; -- trailing
    --@directive: x;
    SHOW TABLES
    ;
    """
    texts = [raw.text for raw in split(script)]
    assert texts == [
        """SELECT ';' FROM "a;b" /* ; */ WHERE `c;` = 1;""",
        "SHOW TABLES\n    ;",
    ]


def test_span_and_text_are_those_of_the_script():
    script = "SHOW TABLES;\n\n  DROP STREAM s;"
    second = parse(script)[1]
    assert second.span == Span(16, 30, 3, 3)
    assert script[second.span.start : second.span.end] == second.text == "DROP STREAM s;"


def test_spans_of_nodes():
    text = "SELECT a,\n  f(b + 1) FROM s;"
    select = one(text)
    call = select.select[1].expr
    assert text[call.span.start : call.span.end] == "f(b + 1)"
    assert (call.span.line, call.span.column) == (2, 3)
    assert text[select.source.span.start : select.source.span.end] == "s"


def test_nothing_is_no_statement():
    assert parse(" \n -- nothing\n/* at all */ \ufeff") == []


def test_a_bare_comment_line_ends_with_its_line():
    assert len(parse("--\nSHOW TABLES;\n--")) == 1


def test_the_case_of_types_does_not_count():
    create, use = split('CREATE TYPE `Street` AS INT; CREATE STREAM s (a `street`, b "int");')
    statement = parse_one(create).statement
    columns = parse_one(use, types={statement.name: statement.type}).statement.columns
    assert [column.type for column in columns] == [model.INTEGER, model.INTEGER]
    assert one("DROP TYPE `Street`;").name == statement.name


def test_an_unfinished_statement_is_kept_and_refused():
    first, rest = split("SHOW TABLES; SHOW")
    assert parse_one(first).statement == ast.Show("TABLES")
    with pytest.raises(ParseError) as caught:
        parse_one(rest)
    assert caught.value.statement == "SHOW"


def test_a_statement_may_see_types_made_before_it():
    create, use = split("CREATE TYPE t AS INT; CREATE STREAM s (a t, b ARRAY<T>);")
    statement = parse_one(create).statement
    columns = parse_one(use, types={statement.name: statement.type}).statement.columns
    assert [column.type for column in columns] == [model.INTEGER, model.Array(model.INTEGER)]
    assert "Cannot resolve unknown type: T" in refused(use.text).text()


# --- names


@pytest.mark.parametrize("word", NON_RESERVED)
def test_non_reserved_words_are_names(word):
    assert parse_expression(f"{word} + 1") == parse_expression(f"`{word}` + 1")
    assert parse_expression(f"x->{word}->{word}") == parse_expression(f"x->`{word}`->`{word}`")
    assert parse_expression(f"{word}(1)" if word not in {"MAP", "STRUCT"} else "1") is not None
    created = one(f"CREATE STREAM {word} ({word} INT, a STRUCT<{word} INT>) WITH ({word}=1);")
    assert created.name == created.columns[0].name == word
    query = f"SELECT a {word}, {word}.{word}, {word} AS {word} FROM {word} {word} EMIT CHANGES;"
    select = one(query)
    assert [item.alias for item in select.select] == [word, None, word]
    assert select.source == ast.SourceRef(word, word)
    assert one(f"INSERT INTO {word} ({word}) VALUES (1);").columns == (word,)
    assert one(f"SELECT * FROM s GROUP BY {word} EMIT CHANGES;").group_by == (expr.Ref(word),)
    assert one(f"DROP TABLE {word};").name == word
    assert one(f"CREATE TYPE {word} AS INT;").name == word


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_need_quotes(word):
    error = refused(f"SELECT * FROM {word};")
    assert f'"{word}" is a reserved keyword and it can\'t be used as an identifier' in error.text()
    assert one(f"SELECT * FROM `{word}`;").source.name == word


def test_case_and_quotes_of_names():
    assert parse_expression("aB.`cD`") == expr.Ref("cD", "AB")
    assert parse_expression('"a""b`"') == expr.Ref('a"b`')
    assert parse_expression('`a``b"`') == expr.Ref('a`b"')
    assert parse_expression("2nd + _x@1") == expr.Binary("+", expr.Ref("2ND"), expr.Ref("_X@1"))


def test_source_names_have_fewer_characters():
    assert one('DROP STREAM "a-B_1";').name == "a-B_1"
    assert "Got: 'a.b'" in refused("DROP STREAM `a.b`;").text()


def test_keywords_have_no_case():
    assert one("sELECT * fROM s eMIT cHANGES;") == one("SELECT * FROM S EMIT CHANGES;")


# --- types


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("int", model.INTEGER),
        ("INTEGER", model.INTEGER),
        ("VARCHAR(10)", model.STRING),
        ("VARCHAR(STRING)", model.STRING),
        ("decimal(100, 99)", model.Decimal(100, 99)),
        ("INT ARRAY ARRAY", model.Array(model.Array(model.INTEGER))),
        ("MAP<STRING, INT ARRAY>", model.Map(model.STRING, model.Array(model.INTEGER))),
        (
            "STRUCT<a TIME, `b` STRUCT<>>",
            model.Struct((model.Field("A", model.TIME), model.Field("b", model.Struct(())))),
        ),
    ],
)
def test_types(text, type_):
    assert parse_type(text) == type_


# --- what is refused, and where


@pytest.mark.parametrize(
    ("word", "meant"),
    [("SELEKT", "SELECT"), ("creat", "CREATE"), ("DORP", "DROP"), ("LSIT", "LIST")],
)
def test_a_misspelt_first_word(word, meant):
    error = refused(f"{word} x;")
    assert error.text() == (
        f"line 1:1: Syntax Error\nUnknown statement '{word}'\nDid you mean '{meant}'?"
    )


@pytest.mark.parametrize(
    "text",
    [
        "RUN SCRIPT 'x';",
        "ASSERT VALUES s VALUES (1);",
        "ASSERT NULL VALUES s (a) KEY (1);",
        "ASSERT STREAM s (a INT);",
    ],
)
def test_statements_of_test_files(text):
    assert one(text, test_statements=True)
    assert "Syntax Error" in refused(text).text()


def test_the_error_knows_its_statement_and_place():
    error = refused("SHOW TABLES;\n  SELECT a FROM;\nSHOW TABLES;")
    assert error.statement == "SELECT a FROM;"
    assert (error.span.line, error.span.column) == (2, 16)


def test_limits_of_numbers():
    assert parse_expression("-9223372036854775808") == expr.IntLit(-(2**63))
    assert parse_expression("0" * 5000 + "7") == expr.IntLit(7)
    assert parse_expression("1.7976931348623157E308") == expr.DoubleLit(1.7976931348623157e308)
    for text in ("9223372036854775808", "1E309", "9" * 10_000, "1E" + "9" * 10_000):
        with pytest.raises(ParseError):
            parse_expression(text)
    assert "Invalid numeric literal" in refused("PRINT t LIMIT 99999999999999999999;").text()


@given(st.text(st.sampled_from("SELECT FROMab1.'\"`(),;<>=-*/[]{}$:|\n"), max_size=60))
@settings(deadline=None)
def test_any_text_is_read_or_refused(text):
    try:
        parse(text)
    except KsqlError as error:
        assert error.text()  # noqa: PT017 any error will do


WORDS = [
    "SELECT",
    "a",
    "FROM",
    "s",
    "WHERE",
    "(",
    ")",
    ",",
    ";",
    "CREATE",
    "STREAM",
    "TABLE",
    "AS",
    "WITH",
    "=",
    "'x'",
    "1",
    "2.5",
    "*",
    "+",
    "-",
    "->",
    "=>",
    ":=",
    "[",
    "]",
    "<",
    ">",
    "ARRAY",
    "MAP",
    "STRUCT",
    "KEY",
    "EMIT",
    "CHANGES",
    "GROUP",
    "BY",
    "CASE",
    "WHEN",
    "THEN",
    "END",
    "NOT",
    "IN",
    "LIKE",
    "IS",
    "NULL",
    "x",
    "y",
    "${v}",
    "INT",
]


@given(st.lists(st.sampled_from(WORDS), max_size=25), st.sampled_from(["", "SELECT ", "CREATE "]))
@settings(deadline=None)
def test_any_words_are_read_or_refused(words, start):
    try:
        parse(start + " ".join(words))
    except KsqlError as error:
        assert error.text()  # noqa: PT017 any error will do
