from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qtt import tokens

_VALUES = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers().map(lambda i: tokens.Number(str(i))),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@pytest.mark.parametrize("text", ["1", "1.0", "1.00", "1E10", "-0.5e-3", "9007199254740993"])
def test_a_number_stays_as_it_was_written(text):
    assert tokens.parse(text) == text
    assert isinstance(tokens.parse(text), tokens.Number)
    assert tokens.dump({"a": [tokens.parse(text)]}) == '{"a":[' + text + "]}"


def test_a_string_of_digits_is_no_number():
    assert not isinstance(tokens.parse('"1"'), tokens.Number)
    assert tokens.dump("1") == '"1"'


def test_comments_are_removed_but_not_from_strings():
    text = """{ // to the end of the line
      "url": "http://x/*y*/", /* over
      two lines */ "n": 1.50
    }"""
    assert tokens.parse_file(text) == {"url": "http://x/*y*/", "n": "1.50"}


@given(_VALUES)
def test_dumped_tokens_are_read_back(value):
    assert tokens.parse(tokens.dump(value)) == value


def test_plain_has_ordinary_numbers():
    assert tokens.plain(tokens.parse('{"a": [1, 2.5, "3"]}')) == {"a": [1, 2.5, "3"]}
