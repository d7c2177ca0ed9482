from __future__ import annotations

from pathlib import Path

import pytest

from server.settings import BadConfiguration, parse_properties, read_configuration


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=b", {"a": "b"}),
        ("a = b c ", {"a": "b c "}),
        ("a: b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("# x=1\n! y=2\n\n  z=3", {"z": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("listeners=http://h:1,\\\n   http://h:2", {"listeners": "http://h:1,http://h:2"}),
        ("a=x\\\\\nb=y", {"a": "x\\", "b": "y"}),
        (r"a\=b\:c\ d=e", {"a=b:c d": "e"}),
        (r"a=\u00e9\t\n\x", {"a": "é\t\nx"}),
        ("a=b=c", {"a": "b=c"}),
        ("a==b", {"a": "=b"}),
        ("a=1\\", {"a": "1"}),
        ("", {}),
    ],
)
def test_the_format_of_java(text: str, found: dict[str, str]) -> None:
    assert parse_properties(text) == found


def test_options_stand_above_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("ksql.service.id=a_\nlisteners=http://x:1\n")
    found = read_configuration(file, ["ksql.service.id = b_", "k=v=w"])
    assert found == {
        "ksql.service.id": "b_",
        "listeners": "http://x:1",
        "k": "v=w",
        "ksql.extension.dir": str(tmp_path / "ext"),
    }
    assert read_configuration(None) == {}


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match="No such file"):
        read_configuration(tmp_path / "none.properties")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfiguration, match="not UTF-8"):
        read_configuration(binary)
    with pytest.raises(BadConfiguration, match="form key=value"):
        read_configuration(None, ["nonsense"])
