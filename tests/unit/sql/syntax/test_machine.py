"""What the machine takes from Lark beyond its public interface."""

from __future__ import annotations

from operator import attrgetter

import pytest
from lark import Lark
from lark.parsers.lalr_analysis import Shift

LARK = Lark('start: "a" "b"', parser="lalr")
CONF = LARK.parse_interactive().parser_state.parse_conf
RULE = next(iter(CONF.callbacks))


@pytest.mark.parametrize(
    ("thing", "parts"),
    [
        (LARK, ("terminals", "ignore_tokens")),
        (CONF, ("states", "callbacks", "start_state", "end_state")),
        (RULE, ("expansion", "alias", "origin.name", "options.expand1")),
    ],
)
def test_lark_has_the_parts_that_are_used(thing, parts):
    assert len(attrgetter(*parts)(thing)) == len(parts)


def test_a_state_maps_names_to_actions():
    kind, target = CONF.states[CONF.start_state]["A"]
    assert kind is Shift
    assert target in CONF.states
