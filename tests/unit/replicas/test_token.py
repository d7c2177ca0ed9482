"""Tokens: what a client has seen, there and back as a text."""

from __future__ import annotations

import base64

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.replicas.token import TOKEN, BadToken, Token, asked, merged

PLACES = st.dictionaries(
    st.tuples(st.text(max_size=5), st.integers(0, 9)), st.integers(0, 2**63 - 1), max_size=5
)


def text(form):
    return encoded(orjson.dumps(form).decode())


def encoded(json):
    return base64.urlsafe_b64encode(json.encode()).decode()


@given(PLACES)
def test_a_token_comes_back_as_it_was(places):
    token = Token().with_(places)
    assert token.places() == places
    assert Token.of(token.text()) == token


@given(PLACES, PLACES)
def test_the_highest_offset_of_each_place_counts_whatever_comes_first(one, two):
    both = Token().with_(one).with_(two)
    assert both == Token().with_(two).with_(one)
    assert both.places() == merged((one, two))
    assert all(both.places()[place] >= offset for place, offset in one.items())


def test_the_form_of_the_first_version():
    """Clients keep tokens: one that was given once is read for good."""
    token = Token().with_({("t", 0): 7, ("t", 12): 1, ("s", 3): 0})
    kept = text({"version": 1, "positions": {"s": {"3": 0}, "t": {"0": 7, "12": 1}}})
    assert token.text() == kept
    assert Token.of(kept).of_topic("t") == {("t", 0): 7, ("t", 12): 1}


def test_an_empty_text_names_nothing():
    assert Token.of("") == Token()
    assert asked({TOKEN: ""}) == Token()
    assert asked({}) is None


@pytest.mark.parametrize(
    "bad",
    [
        "x",
        "ä",
        text([]),
        text({}),
        text({"version": 1}),
        text({"version": 0, "positions": {}}),
        text({"version": 1, "positions": {}, "more": 1}),
        text({"version": 1, "positions": []}),
        text({"version": 1, "positions": {"t": 1}}),
        text({"version": 1, "positions": {"t": {"a": 1}}}),
        text({"version": 1, "positions": {"t": {"0": "1"}}}),
        text({"version": 1, "positions": {"t": {"0": -1}}}),
        text({"version": 1, "positions": {"t": {"0": True}}}),
        text({"version": 1, "positions": {"t": {"0": 2**63}}}),
        text({"version": 1, "positions": {"t": {"-1": 1}}}),
        text({"version": 1, "positions": {"t": {str(2**31): 1}}}),
        encoded('{"version": 1, "positions": {"\\ud800": {"0": 1}}}'),
        encoded('{"version": 1, "positions": ' + "[" * 100_000),
        text({"version": 1, "positions": {"t": dict.fromkeys(map(str, range(100_000)), 1)}}),
    ],
    ids=lambda bad: f"{len(bad)} characters",
)
def test_what_is_no_token_is_refused(bad):
    with pytest.raises(BadToken) as caught:
        asked({TOKEN: bad})
    assert caught.value.code == 40000


def test_a_token_of_a_later_version_says_so():
    with pytest.raises(BadToken) as caught:
        Token.of(text({"version": 2, "places": {}}))
    assert "it has version 2, this server reads up to 1" in caught.value.detail
