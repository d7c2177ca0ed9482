"""Tokens: what a client has seen, there and back as a text."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.error_table import FOREIGN_TOKEN
from ksql.core.token import (
    TOKEN,
    BadToken,
    NewerToken,
    Token,
    TokenScope,
    merged,
    requested_token,
)

PLACES = st.dictionaries(
    st.tuples(st.text(max_size=5), st.integers(0, 9)), st.integers(0, 2**63 - 1), max_size=5
)


def text(form):
    return encoded(orjson.dumps(form).decode())


def encoded(json):
    return base64.urlsafe_b64encode(json.encode()).decode()


HERE = TokenScope("cluster", "here_")
NAMES = st.text(max_size=5)


@dataclass
class Issuer:
    scope: TokenScope = HERE


@given(PLACES, NAMES, NAMES)
def test_a_token_comes_back_as_it_was(places, cluster, service):
    token = Token(scope=TokenScope(cluster, service)).with_(places)
    assert token.places() == places
    assert Token.of(token.text()) == token


@given(PLACES, PLACES)
def test_the_highest_offset_of_each_place_counts_whatever_comes_first(one, two):
    both = Token().with_(one).with_(two)
    assert both == Token().with_(two).with_(one)
    assert both.places() == merged((one, two))
    assert all(both.places()[place] >= offset for place, offset in one.items())


SEEN = {("t", 0): 7, ("t", 12): 1, ("s", 3): 0}
FIRST = "eyJ2ZXJzaW9uIjoxLCJwb3NpdGlvbnMiOnsicyI6eyIzIjowfSwidCI6eyIwIjo3LCIxMiI6MX19fQ=="
SECOND = (
    "eyJ2ZXJzaW9uIjoyLCJjbHVzdGVyIjoiY2x1c3RlciIsInNlcnZpY2UiOiJoZXJlXyIsInBvc2l0aW9ucyI6eyJzIjp7"
    "IjMiOjB9LCJ0Ijp7IjAiOjcsIjEyIjoxfX19"
)


@pytest.mark.parametrize(("kept", "scope"), [(FIRST, TokenScope()), (SECOND, HERE)])
def test_released_tokens_stay_readable(kept, scope):
    """Clients keep tokens."""
    assert Token.of(kept) == Token(scope=scope).with_(SEEN)
    assert requested_token({TOKEN: kept}, Issuer()) == Token(scope=HERE).with_(SEEN)


def test_the_form_that_is_given():
    assert Token(scope=HERE).with_(SEEN).text() == SECOND


@pytest.mark.parametrize("scope", [TokenScope("other", "here_"), TokenScope("cluster", "other_")])
def test_a_token_of_another_home_is_refused(scope):
    with pytest.raises(FOREIGN_TOKEN.base, match=FOREIGN_TOKEN.pattern) as caught:
        requested_token({TOKEN: SECOND}, Issuer(scope))
    error = caught.value
    assert (error.code, error.message) == (
        40000,
        "The consistency token was given by another service",
    )
    assert 'the service "here_" on the Kafka cluster "cluster"' in error.detail
    assert f'the service "{scope.service}" on the Kafka cluster "{scope.cluster}"' in error.detail
    with pytest.raises(FOREIGN_TOKEN.base, match=FOREIGN_TOKEN.pattern):
        requested_token({TOKEN: Token(scope=scope).text()}, Issuer())


def test_an_empty_text_names_nothing():
    assert Token.of("") == Token()
    assert requested_token({TOKEN: ""}, Issuer()) == Token(scope=HERE)
    assert requested_token({}, Issuer()) is None


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
        text({"version": 1, "cluster": "c", "service": "s", "positions": {}}),
        text({"version": 2, "positions": {}}),
        text({"version": 2, "cluster": "c", "service": 1, "positions": {}}),
        text({"version": 2, "cluster": None, "service": "s", "positions": {}}),
        encoded('{"version": 2, "cluster": "\\ud800", "service": "", "positions": {}}'),
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
def test_malformed_token_is_refused(bad):
    with pytest.raises(BadToken) as caught:
        requested_token({TOKEN: bad}, Issuer())
    assert caught.value.code == 40000


def test_a_token_of_a_later_version_says_so():
    with pytest.raises(NewerToken) as caught:
        requested_token({TOKEN: text({"version": 3, "places": {}})}, Issuer())
    assert caught.value.code == 40000
    assert "it has version 3, this server reads up to 2" in caught.value.detail
    assert "A server of a later version has given it" in caught.value.hint
