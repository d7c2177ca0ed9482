from __future__ import annotations

import pytest

from server.cli.split import Statement, split


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ; ;\n", []),
        ("A; B ;", ["A;", "B ;"]),
        ("A\n  B;", ["A\n  B;"]),
        ("SELECT ';' FROM `a;b`, \"c;d\";", ["SELECT ';' FROM `a;b`, \"c;d\";"]),
        ("SELECT 'it''s; ok';X;", ["SELECT 'it''s; ok';", "X;"]),
        ("-- no; not\nA;", ["A;"]),
        ("A -- ; 'x\n;", ["A        \n;"]),
        ("A /* ; ' \n */ B;", ["A        \n    B;"]),
        ("SELECT '--x';", ["SELECT '--x';"]),
        ("SELECT '/*';", ["SELECT '/*';"]),
        ("A; -- the end", ["A;"]),
    ],
)
def test_whole_texts(text: str, statements: list[str]) -> None:
    parts = split(text)
    assert [statement.text for statement in parts.statements] == statements
    assert parts.is_complete


def test_positions_stay_what_they_are() -> None:
    text = "A;\n\n/* two\nlines */ SELECT /* x */ b;"
    first, second = split(text).statements
    assert first == Statement("A;", 1)
    assert second == Statement("SELECT         b;", 4, 10)


def test_rest_without_semicolon() -> None:
    parts = split("A;\nB c")
    assert parts.rest == Statement("B c", 2)
    assert not parts.is_complete
    assert [statement.text for statement in parts.closed()] == ["A;", "B c;"]


@pytest.mark.parametrize(
    ("text", "quote", "at"),
    [("A; x 'y;", "'", 2), ("`a", "`", 0), ("x /* y;", "/*", 2), ('"', '"', 0)],
)
def test_unclosed_quotes_and_comments(text: str, quote: str, at: int) -> None:
    parts = split(text)
    assert (parts.open_quote, parts.open_at) == (quote, at)
    assert not parts.is_complete
