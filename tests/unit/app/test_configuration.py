from __future__ import annotations

import pytest

from ksql.app.configuration import CannotShare, check_configuration, place_name
from ksql.app.service import KsqlService
from ksql.control.log.quarantine import BadSkip
from ksql.core.config import Settings
from ksql.exec.dataflow.topic_acl import BadTopicPattern
from ksql.history.database import BadLedgerUrl
from ksql.kafka.settings import BadClientProperty
from ksql.registry.registry import BadRegistryListener

WRONG = [
    ("ksql.hidden.topics", "a,(b", BadTopicPattern),
    ("ksql.readonly.topics", "*", BadTopicPattern),
    ("ksql.command.topic.skip", "1, two", BadSkip),
    ("ksql.schema.registry.listener", "ftp://h:1", BadRegistryListener),
    ("ksql.streams.producer.linger.ms", "soon", BadClientProperty),
    ("ksql.ledger.password.file", "/dev/null", BadLedgerUrl),
]


def test_the_defaults_are_taken():
    check_configuration(Settings())


@pytest.mark.parametrize(("name", "value", "error"), WRONG)
def test_a_wrong_value_is_refused_before_anything_starts(name, value, error, tmp_path):
    service = KsqlService(Settings({name: value, "ksql.state.dir": str(tmp_path / "state")}))
    with pytest.raises(error):
        service.start()
    assert not (tmp_path / "state").exists()


SHARED = {
    "ksql.state.shared": "true",
    "bootstrap.servers": "kafka:9092",
    "ksql.embedded.allow.remote": "true",
}


def test_servers_that_share_need_a_broker_and_an_address_of_their_own():
    check_configuration(Settings(SHARED))
    for more in (
        {"bootstrap.servers": ""},
        {"listeners": "http://127.0.0.1:0"},
        {"listeners": "http://0.0.0.0:8088"},
        {"listeners": "http://[::]:8088"},
    ):
        with pytest.raises(CannotShare):
            check_configuration(Settings(SHARED | more))
    embedded = {"ksql.connect.embedded": "true", "listeners": "http://10.0.0.7:8088"}
    with pytest.raises(CannotShare, match="Connect would be this server's alone"):
        check_configuration(Settings(SHARED | embedded))
    advertised = {"listeners": "http://0.0.0.0:0", "ksql.advertised.listener": "http://h:8088"}
    check_configuration(Settings(SHARED | advertised))


@pytest.mark.parametrize(
    ("listener", "name"), [("http://10.0.0.7:8088", "10.0.0.7_8088"), ("http://[::1]:1", "__1_1")]
)
def test_each_has_a_place_named_by_its_address(listener, name):
    assert place_name(Settings({"listeners": listener})) == name


def test_the_address_of_an_embedded_registry_does_not_matter_next_to_another_registry():
    given = {"ksql.schema.registry.listener": "ftp://h:1", "ksql.schema.registry.url": "http://r:1"}
    check_configuration(Settings(given))
