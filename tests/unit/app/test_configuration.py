from __future__ import annotations

import pytest

from ksql.app.configuration import check_configuration
from ksql.app.registry import BadRegistryListener
from ksql.app.service import KsqlService
from ksql.base.config import Settings
from ksql.commands.quarantine import BadSkip
from ksql.dataflow.rights import BadTopicPattern
from ksql.kafka.check import BadClientProperty

WRONG = [
    ("ksql.hidden.topics", "a,(b", BadTopicPattern),
    ("ksql.readonly.topics", "*", BadTopicPattern),
    ("ksql.command.topic.skip", "1, two", BadSkip),
    ("ksql.schema.registry.listener", "ftp://h:1", BadRegistryListener),
    ("ksql.streams.producer.linger.ms", "soon", BadClientProperty),
]


def test_the_defaults_are_taken():
    check_configuration(Settings())


@pytest.mark.parametrize(("name", "value", "error"), WRONG)
def test_a_wrong_value_is_refused_before_anything_starts(name, value, error, tmp_path):
    service = KsqlService(Settings({name: value, "ksql.state.dir": str(tmp_path / "state")}))
    with pytest.raises(error):
        service.start()
    assert not (tmp_path / "state").exists()


def test_the_address_of_an_embedded_registry_does_not_matter_beside_another_registry():
    given = {"ksql.schema.registry.listener": "ftp://h:1", "ksql.schema.registry.url": "http://r:1"}
    check_configuration(Settings(given))
