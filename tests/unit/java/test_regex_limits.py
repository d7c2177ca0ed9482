"""Patterns that explode: RE2 does not, and backtracking is given up."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ksql.functions.library.regexps import extract, extract_all, split_to_array
from ksql.java.regex import BadRegex, TooSlow, compile_java, replace_all
from ksql.java.regex import matcher as budgets
from ksql.java.regex.matcher import LONGEST_S, PER_PERIOD_S, PERIOD_S, SHORTEST_S, Budget, JavaRegex
from ksql.java.values import ResultTooLong
from tests.examples import examples
from tests.unit.java.support import is_linear, own_budget


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*b", r"(\w+\s?)*!$", "(.*)(.*)(.*)(.*)(.*)x", "(?i)(A|a)+$"]
)
def test_ordinary_patterns_are_linear(pattern):
    regex = compile_java(pattern)
    assert is_linear(regex)
    assert extract(pattern, "a" * 50_000 + "!?") is None


@pytest.mark.parametrize("pattern", ["(?<!x)(a|aa)+$", "(?=a)(a|aa)+$", r"((a|aa)+)\1?$"])
def test_backtracking_is_given_up(pattern, monkeypatch):
    monkeypatch.setattr(budgets, "LONGEST_S", 0.1)
    compile_java.cache_clear()
    with own_budget(), pytest.raises(TooSlow, match="was given up after 100 ms"):
        extract(pattern, "a" * 80 + "!")


def test_a_batch_of_explosions_ends():
    """After some of them each gets a millisecond; ordinary texts still match."""
    clock = Clock()
    budget = Budget(clock)
    assert budget.limit_s() == LONGEST_S
    for _ in range(int(PER_PERIOD_S / LONGEST_S)):
        budget.lost(LONGEST_S)
    assert budget.limit_s() == SHORTEST_S
    regex = JavaRegex("(?<!x)(a|aa)+$", budget)
    for _ in range(100):
        with pytest.raises(TooSlow, match="after 1 ms"):
            regex.search("a" * 80 + "!")
    assert regex.search("aaa") is not None
    clock.now += PERIOD_S
    assert budget.limit_s() == LONGEST_S


def test_finding_all_has_a_limit_too():
    """Each search is linear, so that many of them are not."""
    clock = Clock()
    matches = JavaRegex("a.*b|a", Budget(clock)).finditer("a" * 5_000)
    next(matches)
    clock.now += LONGEST_S + 1
    with pytest.raises(TooSlow):
        next(matches)


def test_results_are_bounded():
    with pytest.raises(ResultTooLong):
        replace_all("a" * 100_000, "a", "b" * 1_000)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("((a{1000}){1000}){1000}", "more than 20000 pieces"),
        ("a{1000000}", "more than 20000 pieces"),
        ("a" * 20_001, "longer than 20000"),
        ("(" * 5_000, "nested too deeply"),
        ("(?<a>x)(?<a>y)", "already defined"),
    ],
)
def test_patterns_are_bounded(pattern, why):
    with pytest.raises(BadRegex, match=why) as caught:
        compile_java(pattern)
    assert len(str(caught.value)) < 500


ATOMS = ["a", "b", ".", "é", "[ab]", "[^a]", r"\w", r"\b", "^", "$", r"\n", "(?i:B)", r"\Z"]
patterns = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, inner).map(lambda both: f"(?:{both[0]}|{both[1]})"),
        inner.map(lambda body: f"({body})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{1,2}"])).map(
            lambda both: f"(?:{both[0]}){both[1]}"
        ),
        st.tuples(inner, st.sampled_from(["*", "+", "?"])).map(
            lambda both: f"({both[0]}){both[1]}"
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=examples(400))
@example(pattern=r"((?:(?:\b|.))*)", text=" B")
@example(pattern="(?:a?|b)*", text="ab")
@example(pattern="(?:a*?)*", text="aab")
@example(pattern="(?:(?:a|)b?|.){1,2}", text="bab")
@given(pattern=patterns, text=st.text(alphabet="abBé \n\r\U0001f680\ud800", max_size=8))
def test_both_engines_agree(pattern, text):
    regex = compile_java(pattern)
    expected = list(regex._timed.find(text))
    assert list(map(tuple, regex.finditer(text))) == expected
    if is_linear(regex) and not regex._differs(text):
        assert list(map(tuple, regex._linear.find(text))) == expected


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [
        (r"\d+", 1414),
        (r"([\w.]+)@([\w.]+)", 181),
        ("foo|bar|baz$", 333_333),
        ("(ab)+", 1414),
        ("(a|b)+", None),
        ("(a+)+", None),
        ("(a?)*", None),
        ("(a?){20}", None),
        ("a{2,5}b?", 125_000),
        ("a?" * 40, None),
    ],
)
def test_short_texts_of_plain_patterns_are_matched_by_the_fastest_engine(pattern, longest):
    short = compile_java(pattern)._short
    assert (short and short.longest) == longest


def test_places_beyond_ascii():
    assert extract_all("é(.)", "xéa\U0001f680éb") == ["éa", "éb"]
    assert extract_all("é(.)", "xéa\U0001f680éb", 1) == ["a", "b"]
    assert split_to_array("é\ud800b\U0001f680c", "[\\x{1F680}\ud800]") == ["é", "b", "c"]


def test_case_is_folded_before_the_complement():
    assert extract("(?i)[^a]", "A") is None
    assert extract("(?i)k", "\u212a") is None


def test_each_query_has_a_budget_of_its_own(monkeypatch):
    """Whoever wastes five seconds a minute turned the matches of all others into NULL."""
    monkeypatch.setattr(budgets, "LONGEST_S", 0.02)
    monkeypatch.setattr(budgets, "PER_PERIOD_S", 0.05)
    compile_java.cache_clear()
    one, other = Budget(), Budget()
    regex = compile_java("(?<!x)(a|aa)+$")
    budgets.use(one)
    for _ in range(3):
        with pytest.raises(TooSlow):
            regex.search("a" * 80 + "!")
    assert one.limit_s() == SHORTEST_S
    budgets.use(other)
    assert other.limit_s() > SHORTEST_S
    with pytest.raises(TooSlow, match="after 20 ms"):
        regex.search("a" * 80 + "!")
