from __future__ import annotations

import decimal
import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.structs import BadForm, Structs, form


class Colour(Enum):
    RED = "r"
    BLUE = "b"


@dataclass(frozen=True)
class Leaf:
    value: Any
    row: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Tree:
    name: str
    colour: Colour
    children: tuple[Tree | Leaf, ...] = ()
    derived: int = field(default=3, init=False)


FORMS = (
    form("test_structs.Colour", Colour, "r=RED b=BLUE"),
    form("test_structs.Leaf", Leaf, "value row"),
    form("test_structs.Tree", Tree, "name colour children"),
)
STRUCTS = Structs(FORMS)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.floats(allow_nan=False)
    | st.decimals(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
leaves = st.builds(Leaf, values, st.lists(values, max_size=2).map(tuple))
trees = st.recursive(
    leaves,
    lambda inner: st.builds(
        Tree, st.text(max_size=3), st.sampled_from(Colour), st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=6,
)


def through_json(value):
    return STRUCTS.build(json.loads(json.dumps(STRUCTS.plain(value))))


@given(trees)
def test_structs_round_trip(tree):
    again = through_json(tree)
    assert again == tree
    assert STRUCTS.plain(again) == STRUCTS.plain(tree)


@given(values)
def test_run_time_values_keep_their_types(value):
    again = through_json(Leaf(value)).value
    assert again == value
    assert type(again) is type(value)


def test_the_form():
    assert STRUCTS.plain(Tree("t", Colour.BLUE, (Leaf(decimal.Decimal("1.50"), (1.5, b"x")),))) == {
        "$": "test_structs.Tree",
        "name": "t",
        "colour": {"$": "test_structs.Colour", "v": "b"},
        "children": [
            {
                "$": "test_structs.Leaf",
                "value": {"$": "decimal", "v": "1.50"},
                "row": [{"$": "double", "v": "1.5"}, {"$": "bytes", "v": "eA=="}],
            }
        ],
    }


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), -0.0, 5e-324])
def test_doubles_that_json_has_not(number):
    assert repr(through_json(number)) == repr(number)


def test_only_known_classes_are_made():
    with pytest.raises(ValueError, match=r"the tag 'os.system' is not known"):
        STRUCTS.build({"$": "os.system", "command": "x"})
    with pytest.raises(ValueError, match=r"the tag \[\] is not known"):
        STRUCTS.build({"$": []})
    with pytest.raises(ValueError, match=r"a test_structs.Leaf has no field 'unknown'"):
        STRUCTS.build({"$": "test_structs.Leaf", "value": 1, "unknown": 2})
    with pytest.raises(ValueError, match=r"a test_structs.Leaf lacks the field 'value'"):
        STRUCTS.build({"$": "test_structs.Leaf"})
    with pytest.raises(ValueError, match=r"'x' is no test_structs.Colour"):
        STRUCTS.build({"$": "test_structs.Colour", "v": "x"})
    with pytest.raises(KeyError):
        STRUCTS.plain(object())


@dataclass(frozen=True)
class Renamed:
    label: str
    shade: Shade | None = None


class Shade(Enum):
    CRIMSON = "#d00"


def test_tags_and_keys_are_their_own():
    renamed = Structs(
        [
            form("test_structs.Tree", Renamed, "name=label colour=shade"),
            form("test_structs.Colour", Shade, "r=CRIMSON"),
        ]
    )
    stored = {
        "$": "test_structs.Tree",
        "name": "x",
        "colour": {"$": "test_structs.Colour", "v": "r"},
    }
    assert renamed.build(stored) == Renamed("x", Shade.CRIMSON)
    assert renamed.plain(renamed.build(stored)) == stored


@pytest.mark.parametrize(
    "forms",
    [(*FORMS, form("test_structs.Leaf", Renamed, "label shade")), (*FORMS, FORMS[1])],
)
def test_tag_belongs_to_one_class(forms):
    with pytest.raises(BadForm, match="is declared twice"):
        Structs(forms)


@pytest.mark.parametrize(
    ("tag", "cls", "keys"),
    [
        ("t", Leaf, "value"),
        ("t", Leaf, "value row more"),
        ("t", Leaf, "value value row"),
        ("t", Leaf, "value row=value"),
        ("t", Tree, "name colour children derived"),
        ("t", Colour, "r=RED"),
        ("t", Colour, "RED BLUE GREEN"),
        ("t", Leaf, "$=value row"),
        ("decimal", Leaf, "value row"),
    ],
)
def test_a_form_names_every_field_once(tag, cls, keys):
    with pytest.raises(BadForm):
        form(tag, cls, keys)


@dataclass(frozen=True)
class Grown:
    name: str
    more: int = 0
    number: int = 0


def test_a_field_with_its_default_is_stored_as_if_it_had_not_come():
    grown = Structs((form("test_structs.Grown", Grown, "name more? n=number?"),))
    assert grown.plain(Grown("x")) == {"$": "test_structs.Grown", "name": "x"}
    assert grown.build(grown.plain(Grown("x"))) == Grown("x")
    stored = {"$": "test_structs.Grown", "name": "x", "more": 1, "n": 2}
    assert grown.plain(Grown("x", 1, 2)) == stored
    assert grown.build(stored) == Grown("x", 1, 2)
