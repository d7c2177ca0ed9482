from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.core.config import (
    PROPERTIES,
    FixedProperty,
    InvalidProperty,
    Settings,
    UnknownProperty,
    UnknownSetting,
    _note_no_effect,
    canonical,
    check,
    check_server,
    comma_list,
)


@pytest.mark.slow
@pytest.mark.parametrize("row", PROPERTIES.values(), ids=PROPERTIES)
def test_every_default_is_read_as_what_it_is(row):
    settings = Settings()
    assert settings.text(row.name) == row.default
    readers = {"int": settings.number, "bool": settings.flag, "list": settings.parts}
    for kind, read in readers.items():
        if kind == row.kind:
            read(row.name)
        else:
            with pytest.raises(UnknownSetting, match=f"no {kind} property '{row.name}'"):
                read(row.name)


@pytest.mark.parametrize("read", [Settings.text, Settings.number, Settings.flag, Settings.parts])
def test_a_misspelt_setting_is_refused_where_it_is_read(read):
    for written in ("ksql.servic.id", "ksql.streams.auto.offset.reset"):
        with pytest.raises(UnknownSetting) as caught:
            read(Settings({written: "1"}), written)
        assert caught.value.code == 50000
        assert "Did you mean" in caught.value.hint


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


@pytest.mark.parametrize("name", ["zzz", "ksql.nonsense", "ksql.foo.dir", "ksql.servic.id"])
def test_only_close_names_that_a_session_may_set_are_suggested(name):
    with pytest.raises(UnknownProperty) as caught:
        check(name)
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
        "ksql.functions.collect_list.limit": "5",
        "sasl.mechanism": "PLAIN",
    }
    assert check_server(known, {"sasl.mechanism"}.__contains__) == []
    odd = {
        "ksql.servic.id": "x",
        "ksql.nonsense": "1",
        "ksql.streams.auto.offset.rest": "latest",
        "listener": "http://0.0.0.0:1",
        "ksql.endpoint.migrate.query": "true",
    }
    assert check_server(odd, lambda _name: False) == [
        "the property ksql.servic.id is not known and has no effect. Did you mean ksql.service.id?",
        "the property ksql.nonsense is not known and has no effect.",
        "the property ksql.streams.auto.offset.rest is not known and has no effect. "
        "Did you mean auto.offset.reset?",
        "the property listener is not known and has no effect. Did you mean listeners?",
        "the property ksql.endpoint.migrate.query is accepted, but has no effect.",
    ]


@pytest.mark.parametrize("prefix", ["", "ksql.streams."])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("commit.interval.ms", "x"),
        ("ksql.query.shuffle.partitions", "1001"),
        ("auto.offset.reset", "oldest"),
        ("ksql.lambdas.enabled", "yes"),
    ],
)
def test_a_servers_configuration_with_a_wrong_value_is_refused(prefix, name, value):
    with pytest.raises(InvalidProperty, match=f"Invalid value {value} for property {name}"):
        check_server({prefix + name: value}, lambda _name: False)


def test_a_setting_without_effect_is_logged_once_when_a_session_sets_it(caplog, monkeypatch):
    without = replace(PROPERTIES["commit.interval.ms"], effect=False)
    monkeypatch.setitem(PROPERTIES, without.name, without)
    _note_no_effect.cache_clear()
    for _request in range(3):
        Settings().with_overrides({"ksql.streams.commit.interval.ms": "5"})
    noted = [record for record in caplog.records if record.message == "property_without_effect"]
    assert [record.property for record in noted] == ["commit.interval.ms"]


@pytest.mark.parametrize("prefix", ["", "ksql.streams."])
def test_a_property_of_kafka_streams_without_meaning_here_does_not_end_a_script(prefix):
    name = f"{prefix}num.stream.threads"
    settings = Settings().with_overrides({name: "8"})
    assert settings.overrides == {"num.stream.threads": "8"}
    assert not PROPERTIES["num.stream.threads"].effect
    with pytest.raises(InvalidProperty):
        Settings().with_overrides({name: "many"})


def test_lists_are_split_in_one_way():
    assert comma_list(" a, b,,c ,") == ("a", "b", "c")
    assert comma_list("") == ()
    assert Settings({"ksql.state.anew": "CTAS_1 , all"}).parts("ksql.state.anew") == (
        "CTAS_1",
        "all",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("commit.interval.ms", "0"),
        ("ksql.suppress.enabled", "TRUE"),
        ("auto.offset.reset", "Earliest"),
        ("ksql.state.dir", "anything"),
        ("ksql.state.aside.retention.ms", "-1"),
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


@pytest.mark.parametrize("name", ["ksql.service.id", "bootstrap.servers", "ksql.heartbeat.enable"])
def test_a_session_cannot_change_the_server(name):
    value = "true" if PROPERTIES[name].kind == "bool" else "x"
    with pytest.raises(FixedProperty) as caught:
        Settings().with_overrides({name: value})
    assert caught.value.message == f"Cannot override property '{name}'"
    assert caught.value.hint == "It can only be set in the server's configuration."
    with pytest.raises(FixedProperty):
        Settings().settable(name)


@pytest.mark.parametrize("entry", ["auto.offset.reset", "ksql.streams.auto.offset.reset"])
def test_a_denied_property_cannot_be_set(entry):
    server = Settings({"ksql.properties.overrides.denylist": f"commit.interval.ms, {entry}"})
    with pytest.raises(FixedProperty):
        server.with_overrides({"auto.offset.reset": "earliest"})
    with pytest.raises(FixedProperty):
        server.settable("ksql.streams.auto.offset.reset")
    assert server.settable("ksql.streams.processing.guarantee") == "processing.guarantee"
    assert (
        server.with_overrides({"ksql.lambdas.enabled": "false"}).flag("ksql.lambdas.enabled")
        is False
    )


def test_properties_of_functions_are_reported_once_the_session_winning():
    settings = Settings(
        {"ksql.functions.f.x": "z-server", "ksql.functions.f.y": "2", "ksql.service.id": "s"}
    ).with_overrides({"ksql.functions.f.x": "a-session"})
    assert sorted(settings.functions()) == [
        ("ksql.functions.f.x", "a-session"),
        ("ksql.functions.f.y", "2"),
    ]
