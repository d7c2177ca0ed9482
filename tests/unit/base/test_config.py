from __future__ import annotations

import pytest

from ksql.base.config import (
    PROPERTIES,
    InvalidProperty,
    Settings,
    UnknownProperty,
    canonical,
    check,
    check_server,
)
from ksql.base.ranges import RANGES


@pytest.mark.parametrize("row", PROPERTIES.values(), ids=PROPERTIES)
def test_every_default_is_of_its_own_type(row):
    settings = Settings()
    assert row.doc
    assert settings.text(row.name) == row.default
    match row.type:
        case "int":
            assert isinstance(settings.number(row.name), int)
        case "bool":
            assert settings.flag(row.name) in (True, False)
            assert row.default in ("true", "false")
        case "choice":
            assert row.default in row.choices
        case "text":
            assert row.choices == ()
    if row.default:
        assert check(row.name, row.default) == row.name


def test_streams_properties_may_have_their_prefix():
    assert canonical("ksql.streams.auto.offset.reset") == "auto.offset.reset"
    assert check("ksql.streams.auto.offset.reset", "earliest") == "auto.offset.reset"
    assert Settings({"ksql.streams.auto.offset.reset": "earliest"}).text("auto.offset.reset") == (
        "earliest"
    )


def test_an_unknown_property_says_what_it_may_have_meant():
    with pytest.raises(UnknownProperty) as caught:
        check("auto.offset.rest")
    assert caught.value.message == (
        "Not recognizable as ksql, streams, consumer, or producer property: 'auto.offset.rest'"
    )
    assert caught.value.hint == "Did you mean auto.offset.reset?"
    with pytest.raises(UnknownProperty) as caught:
        check("zzz")
    assert caught.value.hint == ""


_WHOLE = "a whole number from 0 to 9223372036854775807"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ksql.query.shuffle.partitions", "1000000", "a whole number from 0 to 1000"),
        ("ksql.query.shuffle.partitions", "-1", "a whole number from 0 to 1000"),
        ("ksql.query.max.records.per.batch", "0", "a whole number from 1 to 100000000"),
        ("cache.max.bytes.buffering", "-5", _WHOLE),
        ("ksql.max.push.queries", "9" * 5000, None),
        ("commit.interval.ms", "x", _WHOLE),
        ("commit.interval.ms", "", _WHOLE),
        ("commit.interval.ms", "--5", _WHOLE),
        ("commit.interval.ms", "\N{SUPERSCRIPT TWO}", _WHOLE),
        ("commit.interval.ms", "1.5", _WHOLE),
        ("ksql.suppress.enabled", "yes", "true or false"),
        ("auto.offset.reset", "none", "earliest or latest"),
    ],
)
def test_values_are_checked(name, value, expected):
    with pytest.raises(InvalidProperty) as caught:
        check(name, value)
    said = caught.value.message
    assert len(said) < 500
    assert expected is None or said == (
        f"Invalid value {value} for property {name}: expected {expected}"
    )


def test_a_servers_configuration_is_checked_at_its_start():
    known = {
        "ksql.streams.auto.offset.reset": "earliest",
        "ksql.streams.producer.linger.ms": "5",
        "ksql.functions.collect_list.limit": "5",
        "spark.sql.shuffle.partitions": "3",
        "sasl.mechanism": "PLAIN",
    }
    assert check_server(known) == []
    assert check_server({"ksql.servic.id": "x", "ksql.nonsense": "1"}) == [
        "the property ksql.servic.id is not known and has no effect. Did you mean ksql.service.id?",
        "the property ksql.nonsense is not known and has no effect.",
    ]
    with pytest.raises(InvalidProperty):
        check_server({"ksql.streams.commit.interval.ms": "x"})


def test_every_range_is_of_a_property_and_holds_its_default():
    for name, (low, high) in RANGES.items():
        assert PROPERTIES[name].type == "int"
        assert low <= int(PROPERTIES[name].default) <= high


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("commit.interval.ms", "0"),
        ("ksql.suppress.enabled", "TRUE"),
        ("auto.offset.reset", "Earliest"),
        ("ksql.state.dir", "anything"),
        ("ksql.functions.mask.char", "anything"),
    ],
)
def test_values_that_fit(name, value):
    assert check(name, value) == name


def test_an_override_goes_before_the_server_and_the_default():
    settings = Settings({"commit.interval.ms": "5"})
    assert settings.number("commit.interval.ms") == 5
    changed = settings.with_overrides({"ksql.streams.commit.interval.ms": "7"})
    assert changed.number("commit.interval.ms") == 7
    assert changed.overrides == {"commit.interval.ms": "7"}
    assert settings.number("commit.interval.ms") == 5
    assert changed.without("ksql.streams.commit.interval.ms").number("commit.interval.ms") == 5
    assert Settings().text("no.such.property") == ""


@pytest.mark.parametrize("name", ["ksql.service.id", "bootstrap.servers", "ksql.heartbeat.enable"])
def test_a_session_cannot_change_the_server(name):
    value = "true" if PROPERTIES[name].type == "bool" else "x"
    with pytest.raises(UnknownProperty) as caught:
        Settings().with_overrides({name: value})
    assert caught.value.hint == "It can only be set in the server's configuration."


@pytest.mark.parametrize("entry", ["auto.offset.reset", "ksql.streams.auto.offset.reset"])
def test_a_denied_property_cannot_be_set(entry):
    server = Settings({"ksql.properties.overrides.denylist": f"commit.interval.ms, {entry}"})
    with pytest.raises(UnknownProperty):
        server.with_overrides({"auto.offset.reset": "earliest"})
    assert (
        server.with_overrides({"ksql.lambdas.enabled": "false"}).flag("ksql.lambdas.enabled")
        is False
    )


def test_properties_of_functions_are_told_once_the_session_winning():
    settings = Settings(
        {"ksql.functions.f.x": "z-server", "ksql.functions.f.y": "2", "ksql.service.id": "s"}
    ).with_overrides({"ksql.functions.f.x": "a-session"})
    assert sorted(settings.functions()) == [
        ("ksql.functions.f.x", "a-session"),
        ("ksql.functions.f.y", "2"),
    ]
