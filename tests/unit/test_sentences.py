from __future__ import annotations

import pytest

from tests import sentences
from tests.sentences import Sentence, has_verb


def texts(source):
    return [(part.line, part.text) for part in sentences.of_markdown(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("One is here. Two\nare there.\n", [(1, "One is here."), (1, "Two are there.")]),
        (
            "CREATE .. AS SELECT works. It ends\n",
            [(1, "CREATE .. AS SELECT works."), (1, "It ends")],
        ),
        ("Version 4.1 is read.\n", [(1, "Version 4.1 is read.")]),
        ("Use `a. b` or [a page](x.md).\n", [(1, "Use x or a page.")]),
        ("# Head\n\nText\n\n```sql\nSELECT 1. Two.\n```\n", [(3, "Text")]),
        ("Run:\n\n    make all\n\nDone\n", [(1, "Run:"), (5, "Done")]),
        ("- one\n  more\n- two\n", [(1, "one more"), (3, "two")]),
        ("- one\n\n    more\n", [(1, "one"), (3, "more")]),
        ("| `a` or `b` or `c` | d |\n", [(1, "x"), (1, "d")]),
        ("| a | b. c |\n|---|---|\n", [(1, "a"), (1, "b."), (1, "c")]),
        ("term\n:   A thing.\n", [(1, "term"), (2, "A thing.")]),
        ("<!-- parsed -->\nText\n", [(2, "Text")]),
    ],
)
def test_markdown_is_cut_into_sentences(source, expected):
    assert texts(source) == expected


def test_a_docstring_is_cut_without_its_code_and_the_heads_of_its_sections():
    text = (
        "Return it.\n\n    Call it::\n\n        f(1. 2)\n\n    Raises:\n        KeyError: If not.\n"
    )
    parts = [(part.line, part.text) for part in sentences.of_docstring(text, 10)]
    assert parts == [(10, "Return it."), (12, "Call it::"), (17, "KeyError: If not.")]


@pytest.mark.parametrize(
    ("text", "number"), [("One is here.", 3), ("A - b, x = y", 4), ("", 0), ("- | :", 0)]
)
def test_words_are_counted(text, number):
    assert Sentence(1, text).words == number


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("One waits.", True),
        ("Try it.", True),
        ("It ended.", True),
        ("Of several, exactly one.", False),
    ],
)
def test_a_verb_is_seen(text, verb):
    assert has_verb(Sentence(1, text)) == verb
