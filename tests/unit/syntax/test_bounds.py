"""A statement that is too long is refused before it is parsed."""

from __future__ import annotations

import pytest

from ksql.syntax.nesting import LONGEST_STATEMENT, MOST_WORDS, TooLong
from ksql.syntax.parser import split


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
