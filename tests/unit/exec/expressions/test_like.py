from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ksql.exec.expressions.compare import BadLikePattern, is_like_pattern, like, like_test
from ksql.exec.expressions.errors import NullOperand

ANY = "[^\n\r\u0085\u2028\u2029]"


def by_definition(text, pattern, escape):
    """The pattern as a regular expression, as Java's LIKE is defined."""
    parts = []
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            parts.append(re.escape(next(chars)))
        else:
            parts.append({"%": f"{ANY}*", "_": ANY}.get(char, re.escape(char)))
    return re.fullmatch("".join(parts), text) is not None


letters = st.text(alphabet="ab%_\n\r!é\ud800", max_size=9)


@given(text=letters, pattern=letters, escape=st.sampled_from([None, "!"]))
@example(text="ab", pattern="%a%b", escape=None)
@example(text="aba", pattern="ab%ba", escape=None)
@example(text="a\nb", pattern="%\n%", escape=None)
@example(text="a\nb\r", pattern="%\n%\r", escape=None)
def test_means_what_the_definition_says(text, pattern, escape):
    if escape and not is_like_pattern(pattern, escape):
        with pytest.raises(BadLikePattern):
            like(text, pattern, escape)
        return
    assert like(text, pattern, escape) == by_definition(text, pattern, escape)


@pytest.mark.parametrize("pattern", ["%" + "a%" * 30 + "b", "%" + "_a%" * 30 + "b", "%_" * 50])
def test_many_wildcards_are_no_matter(pattern):
    """Backtracking would take longer than the universe is old."""
    assert not like("a" * 20_000 + "\n", pattern, None)


def test_null_operands():
    for text, pattern in ((None, "a"), ("a", None)):
        with pytest.raises(NullOperand):
            like(text, pattern, None)


@pytest.mark.parametrize("pattern", ["a", "%", "a%", "%a%", "_", "a\n", "%\n"])
def test_a_null_is_an_error_for_a_constant_pattern(pattern):
    with pytest.raises((TypeError, AttributeError), match="NoneType"):
        like_test(pattern, None)(None)
