"""A statement that is too long is refused before it is parsed."""

from __future__ import annotations

import tracemalloc
from itertools import islice

import pytest

from ksql.sql.syntax.lexer import LONGEST_STATEMENT, MOST_WORDS, TooLong
from ksql.sql.syntax.parser import parse_one, split, statements


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM s WHERE a IN (" + "123456," * 700_000 + "1);",
        "CREATE STREAM s (a INT); SELECT '" + "x" * LONGEST_STATEMENT + "';",
        "SELECT " + "+".join("1" * (MOST_WORDS // 2 + 1)) + ";",
        "SELECT '" + ";" * LONGEST_STATEMENT + "';",
    ],
)
def test_statements_are_bounded(text):
    with pytest.raises(TooLong) as caught:
        split(text)
    assert len(caught.value.text()) < 500
    assert caught.value.hint


def test_a_script_of_many_statements_is_not():
    assert len(split("SHOW STREAMS;\n" * 10_000)) == 10_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("SELECT '" + "${x}" * 2_500 + "';", "x" * 400_000),
        ("SELECT '" + "${x}" * 2_500 + "';", "x" * 101),
        ("SELECT " + "+".join(["${x}"] * 5_000) + ";", "1" * 60),
        ("SELECT '" + "${x}" * 60_000 + "';", "'" * 5),
        ("SELECT " + "'${x}'," * 10_000 + "1;", "x" * 30),
    ],
)
def test_statements_are_bounded_with_their_variables_too(text, value):
    """It is refused before it is so long: of 10 MB it would become hundreds of GB."""
    [raw] = split(text)
    with pytest.raises(TooLong):
        parse_one(raw, variables={"x": value})


def test_the_values_of_variables_that_are_not_named_are_not_looked_at():
    class Untouched(str):
        __slots__ = ()

        def replace(self, *_args):
            raise AssertionError

    [raw] = split("SHOW TOPICS; DEFINE z = '${x}';")[1:]
    parsed = parse_one(raw, variables={"x": "it's", "y": Untouched("y")})
    assert parsed.text == "DEFINE z = 'it''s';"


@pytest.mark.parametrize("piece", [";", "1;", "ab;\n", "-1;"])
def test_a_text_is_read_no_further_than_it_is_taken(piece):
    """Ten megabytes of semicolons took four gigabytes and two minutes to be refused."""
    cut = statements(piece * (10_000_000 // len(piece)))
    tracemalloc.start()
    try:
        assert len(list(islice(cut, 1000))) == 1000
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_line_ends_take_no_memory():
    text = "\n" * 1_000_000 + "SHOW\n STREAMS;"
    tracemalloc.start()
    try:
        [raw] = split(text)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert [(word.span.line, word.span.column) for word in raw.words] == [
        (1_000_001, 1),
        (1_000_002, 2),
        (1_000_002, 9),
    ]


def test_a_number_has_the_place_of_its_sign():
    [raw] = split("SELECT\n -1;")
    assert [(word.text, word.span.line, word.span.column) for word in raw.words] == [
        ("SELECT", 1, 1),
        ("-1", 2, 2),
        (";", 2, 4),
    ]
