"""Patterns of strangers hold nothing: one helper compiles them, and its work is bounded."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ksql.java.regex import BadRegex, TimedPattern, TooSlow, dialect, matcher
from ksql.java.regex import matcher as budgets
from ksql.java.regex.matcher import Budget, JavaRegex, compile_java
from ksql.java.timeformat import formatter, parse_date, parse_timestamp
from ksql.java.timeformat.errors import BadPattern, BadText
from ksql.java.timeformat.tokens import DEEPEST_SECTION, LONGEST_PATTERN
from tests.unit.java.support import is_linear, own_budget

ROOT = Path(__file__).parents[3]
MADE_BY_US = {
    "ksql/exec/dataflow/topic_acl.py": "patterns of the operator's configuration",
    "ksql/formats/delimited/serde.py": "one escaped character, in a class",
    "ksql/java/regex/matcher.py": "the helper",
    "ksql/java/timeformat/javatime.py": (
        "digits and escaped text only: nothing can be tried twice; few choices, else the helper"
    ),
    "ksql/java/timeformat/fastdate.py": "the names of a letter",
    "ksql/exec/expressions/compare.py": "literals",
    "ksql/java/uri.py": "literals",
    "ksql/core/query_version.py": "names of consumer groups",
    "ksql/control/statements/masking.py": "quotes and words of the language, none tried twice",
    "ksql/sql/syntax/lexer.py": "the grammar's words",
    "ksql/spark/query/cut_over.py": "escaped names of queries",
    "server/logs.py": "ranges of characters",
    "server/cli/commands.py": "the terminal's commands",
    "server/cli/rebuild_bar.py": "words of the language, and a name as it has it",
    "server/cli/migrations/statements.py": "words of the language, and names as it has them",
    "server/cli/session.py": "the terminal's commands",
    "server/cli/error_text.py": "a place in a message, at a terminal",
}
"""Modules that give ``re`` what is not written there as it is; and why that is no stranger's."""
CALLS = ("compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")


@pytest.fixture
def short(monkeypatch):
    """A budget of its own, of which each match takes little."""
    monkeypatch.setattr(budgets, "LONGEST_S", 0.01)
    compile_java.cache_clear()
    formatter.cache_clear()
    with own_budget():
        yield
    compile_java.cache_clear()
    formatter.cache_clear()


def modules():
    for folder in ("ksql", "server"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def test_only_the_helper_gives_the_engines_what_is_not_written_in_the_code():
    with_others = {
        name
        for name, tree in modules()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "re"
        and call.func.attr in CALLS
        and not isinstance(call.args[0], ast.Constant)
    }
    assert with_others == set(MADE_BY_US)


def test_a_number_of_a_date_gives_nothing_back():
    """As in commons-lang: so the time is linear, and no pattern multiplies what is tried."""
    assert parse_date("yyyy'-1'MM", "2011-112") == parse_date("yyyy-MM", "2011-12")
    with pytest.raises(BadText):
        parse_date("y'1'", "20111")
    with pytest.raises(BadText):
        parse_date("y'1'" * 40 + "'z'", "1" * 100)


@pytest.mark.parametrize("text", ["99999999999", "2147483648", "1" * 10_000])
def test_a_number_of_a_date_is_an_int(text):
    with pytest.raises(BadText, match="out of range"):
        parse_date("yyyy", text)


def test_a_width_of_a_date_may_be_any():
    with pytest.raises(BadText):
        parse_date("y" * 900 + "M", "1")


@pytest.mark.parametrize("pattern", ["uuuuH" * 9, "[H][H][H][H][H]", "yyyyyH'1'" * 5])
def test_patterns_of_many_choices_have_a_time_limit(short, pattern):
    assert isinstance(formatter(pattern).regex, TimedPattern)


def test_signed_years_do_not_multiply_what_is_tried():
    """Their choices were not counted; each year doubled the time 14 times."""
    with pytest.raises((BadText, TooSlow)):
        parse_timestamp("uuuuH" * 12 + "'x'", "+1111111111111111111" * 12 + "yx")


@pytest.mark.parametrize("read", [parse_date, parse_timestamp])
def test_date_patterns_are_bounded(read):
    with pytest.raises(BadPattern, match=f"longer than {LONGEST_PATTERN}") as caught:
        read("y'1'" * 1_000, "1")
    assert len(str(caught.value)) < 500


def test_sections_and_zones_of_date_patterns_are_bounded():
    assert formatter("[" * DEEPEST_SECTION + "HH").read("", "time").values == {}
    with pytest.raises(BadPattern, match="more than 50 sections in one another"):
        formatter("[" * (DEEPEST_SECTION + 1) + "HH")
    with pytest.raises(BadPattern, match="too many zones"):
        formatter("z'-'" * 50)


def test_an_expression_is_compiled_for_one_engine_until_it_has_been_used_often():
    """``re`` takes milliseconds for each large set of a pattern."""
    regex = JavaRegex("a.c", Budget())
    for _ in range(matcher._OFTEN):
        assert regex.search("abc") is not None
        assert "_short" not in vars(regex)
    assert regex.search("abc") is not None
    assert regex._short is not None
    many = JavaRegex("." * 750, Budget())
    for _ in range(matcher._OFTEN + 1):
        assert many.search("x" * 750) is not None
    assert many._short is None


def test_sets_of_characters_are_bounded():
    for pattern in (r"\p{L}" * 40, r"[\p{L}" + r"&&\P{L}" * 40 + "]", "[" + r"\p{L}" * 40 + "]"):
        with pytest.raises(BadRegex, match="more than 20000 ranges"):
            compile_java(pattern)
    assert compile_java(r"\p{L}" * 10).search("abcdefghij") is not None
    assert compile_java("." * 19_000).search("x") is None


def test_pieces_that_may_be_absent_are_not_compiled_one_in_another():
    """RE2 does so, and holds the interpreter while it takes the square of their number."""
    assert is_linear(JavaRegex("a{1,19}" * 250, Budget()))
    with pytest.raises(BadRegex, match="more than 5000 pieces that may be absent"):
        JavaRegex("a{1,19}" * 1_000, Budget())


def test_many_characters_and_references_are_read_once(monkeypatch):
    """Each was joined with all before it, and each reference counted the groups again."""
    unions = []

    def count(*sets):
        unions.append(len(sets))
        return union(*sets)

    union = dialect.union
    monkeypatch.setattr(
        dialect,
        "union",
        count,
    )
    letters = "".join(chr(0x100 + 2 * i) for i in range(2_000))
    assert JavaRegex(f"[{letters}]", Budget()).search("\u0100") is not None
    assert unions.count(2_000) == 1
    assert len(unions) == 2_001
