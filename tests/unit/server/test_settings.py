from __future__ import annotations

from pathlib import Path

import pytest

from ksql.core.config import InvalidProperty
from server import entry
from server.propertiesfile import parse_properties
from server.settings import BadConfiguration, odd_properties, read_configuration


@pytest.mark.parametrize(
    ("text", "properties"),
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
def test_the_format_of_java(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


def test_options_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("ksql.service.id=a_\nlisteners=http://x:1\n")
    configuration = read_configuration(file, ["ksql.service.id = b_", "k=v=w"])
    assert configuration == {
        "ksql.service.id": "b_",
        "listeners": "http://x:1",
        "k": "v=w",
        "ksql.extension.dir": str(tmp_path / "ext"),
    }
    assert read_configuration(None) == {}


def test_unreadable_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match="No such file"):
        read_configuration(tmp_path / "none.properties")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfiguration, match="not UTF-8"):
        read_configuration(binary)
    with pytest.raises(BadConfiguration, match="form key=value"):
        read_configuration(None, ["nonsense"])


def test_properties_of_clients_are_known(tmp_path: Path) -> None:
    known = [
        "spark.sql.shuffle.partitions=3",
        "sasl.mechanism=PLAIN",
        "security.protocol=SSL",
        "ksql.streams.security.protocol=SSL",
        "ksql.streams.producer.linger.ms=5",
        "ksql.streams.consumer.isolation.level=read_uncommitted",
        "max.request.size=5",
        "default.api.timeout.ms=5000",
        "ksql.schema.registry.basic.auth.user.info=u:p",
        "ksql.functions.collect_list.limit=5",
    ]
    assert odd_properties(read_configuration(None, known)) == []
    odd = [
        "ksql.streams.num.stream.threads",
        "ksql.streams.producer.linger",
        "ksql.schema.registry.ulr",
    ]
    assert odd_properties(dict.fromkeys(odd, "1")) == [
        "the property ksql.streams.num.stream.threads is accepted, but has no effect.",
        "the property ksql.streams.producer.linger is not known and has no effect.",
        "the property ksql.schema.registry.ulr is not known and has no effect. "
        "Did you mean ksql.schema.registry.url?",
    ]


@pytest.mark.parametrize("prefix", ["", "ksql.streams."])
@pytest.mark.parametrize("in_file", [True, False])
@pytest.mark.parametrize("command", [["server"], ["state", "list"]])
def test_wrong_value_ends_the_command_in_file_and_options(
    command: list[str],
    in_file: bool,
    prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pair = f"{prefix}commit.interval.ms=soon"
    place = f"ksql.state.dir={tmp_path / 'state'}"
    file = tmp_path / "server.properties"
    file.write_text(pair if in_file else "")
    options = ["-o", place, *([] if in_file else ["-o", pair])]
    status = entry.main([command[0], "--config", str(file), *options, *command[1:]])
    assert status == (78 if command[0] == "server" else 1)
    assert "Invalid value soon for property commit.interval.ms" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()
    with pytest.raises(InvalidProperty):
        odd_properties({"ksql.state.aside.retention.ms": "-2"})


def test_a_misspelt_name_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["-o", f"ksql.state.dir={tmp_path}", "-o", "ksql.servic.id=x"]
    assert entry.main(["state", *options, "list"]) == 0
    assert capsys.readouterr().err == (
        "ksql state: warning: the property ksql.servic.id is not known and has no effect. "
        "Did you mean ksql.service.id?\n"
    )
