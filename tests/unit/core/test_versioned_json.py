"""The outside of stored objects: a version, and exactly the fields of that version."""

from __future__ import annotations

import pytest

from ksql.core import versioned_json

VERSIONS = {1: frozenset({"a"}), 2: frozenset({"a", "b"})}


def test_each_version_has_its_fields():
    assert versioned_json.read('{"version": 1, "a": 5}', VERSIONS) == (1, {"version": 1, "a": 5})
    assert versioned_json.read(b'{"b": 6, "format": 2, "a": 5}', VERSIONS, "format")[0] == 2


def test_a_later_version_is_distinguished_whatever_it_holds():
    with pytest.raises(
        versioned_json.NewerVersion, match="has version 3, this server reads up to 2"
    ) as e:
        versioned_json.read('{"version": 3, "c": 1}', VERSIONS)
    assert e.value.version == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting value"),
        ('{"version": 1, "a"', "Expecting"),
        ("[]", "it is no JSON object"),
        ("{}", "it has no version"),
        ('{"version": 0, "a": 1}', "0 is no version"),
        ('{"version": true, "a": 1}', "True is no version"),
        ('{"version": "1", "a": 1}', "'1' is no version"),
        ('{"version": 1, "a": 1, "b": 2, "c": 3}', 'version 1 has no field "b", "c"'),
        ('{"version": 2, "a": 1}', 'it lacks the field "b"'),
    ],
)
def test_all_else_is_damage(text, said):
    with pytest.raises(ValueError, match=said):
        versioned_json.read(text, VERSIONS)


def test_a_text_is_a_text():
    assert versioned_json.text_of({"a": "x"}, "a") == "x"
    for body in ({"a": 1}, {}):
        with pytest.raises(ValueError, match="is no a"):
            versioned_json.text_of(body, "a")
