from __future__ import annotations

import pytest

from ksql.core.types.model import INTEGER, STRING, Map
from ksql.core.types.render import entries, hash_code, java_string


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", 0),
        ("a", 97),
        ("abc", 96354),
        ("hello", 99162322),
        ("Aa", 2112),
        ("BB", 2112),
        ("ä", 228),
        ("😀", 0xD83D * 31 + 0xDE00),
        (7, 7),
        (-1, 0xFFFFFFFF),
        (1 << 32, 1),
        (-(1 << 40), 0xFFFFFF00),
    ],
)
def test_hash_codes_are_those_of_java(key, code):
    assert hash_code(key) == code


def keys(*names):
    return [key for key, _ in entries(dict.fromkeys(names))]


def test_entries_come_by_bucket():
    assert keys(*"dcba") == [*"abcd"]
    assert keys("a", "b", "c") == ["a", "b", "c"]
    assert keys("h", "a") == ["h", "a"]  # 104 and 97 in a table of four


def test_entries_of_one_bucket_keep_their_order():
    assert keys("BB", "Aa") == ["BB", "Aa"]
    assert keys("Aa", "BB") == ["Aa", "BB"]


def test_the_table_grows_with_the_map():
    names = [chr(code) for code in range(110, 97, -1)]
    assert keys(*names) == sorted(names, key=lambda name: ord(name) % 32)


def test_other_keys_keep_their_order():
    assert entries({2.0: "a", 1.0: "b"}) == [(2.0, "a"), (1.0, "b")]
    assert entries({}) == []


def test_the_text_of_a_map_follows_it():
    assert java_string({"d": 1, "c": 2, "a": 3}, Map(STRING, INTEGER)) == "{d=1, a=3, c=2}"
