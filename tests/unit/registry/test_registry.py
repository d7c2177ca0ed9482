"""The registry that a service uses: the configured one, or its own."""

from __future__ import annotations

import httpx
import pytest

from ksql.core.config import Settings
from ksql.formats.schema_registry import Schema
from ksql.kafka.registry_client import ConfluentRegistry
from ksql.kafka.settings import KafkaSettings
from ksql.registry.local import LocalRegistry
from ksql.registry.registry import BadRegistryListener, BadRegistryTopic, kafka_log, open_registry
from tests.unit.registry.memorylog import MemoryLog, Topic

AVRO = Schema("AVRO", '"string"')


def test_a_url_names_somebody_elses(tmp_path):
    url = "http://registry.example:8081"
    registry = open_registry(Settings({"ksql.schema.registry.url": url}), tmp_path, MemoryLog)
    assert isinstance(registry.registry, ConfluentRegistry)
    assert (registry.settings.url, registry.topic) == (url, "")
    registry.close()
    assert list(tmp_path.iterdir()) == []


def test_without_one_it_has_its_own_which_it_finds_again(tmp_path):
    urls = []
    topic = Topic()
    for _ in range(2):
        registry = open_registry(Settings({}), tmp_path, lambda: MemoryLog(topic))
        assert isinstance(registry.registry, LocalRegistry)
        assert registry.topic == "_schemas"
        assert registry.registry.register("s", AVRO) == 1
        assert httpx.get(f"{registry.settings.url}/subjects").json() == ["s"]
        urls.append(registry.settings.url)
        registry.close()
        with pytest.raises(httpx.ConnectError):
            httpx.get(registry.settings.url)
    assert urls[0] == urls[1]


@pytest.mark.parametrize("given", ["8081", "https://here:1", "http://:1", "http://here:x"])
def test_a_listener_that_is_no_address_is_reported(tmp_path, given):
    with pytest.raises(BadRegistryListener, match=given):
        open_registry(Settings({"ksql.schema.registry.listener": given}), tmp_path, MemoryLog)


@pytest.mark.parametrize("given", ["orders", "schemas", "_schema", "_schemas/x"])
def test_a_topic_that_statements_could_write_to_is_refused(given):
    with pytest.raises(BadRegistryTopic, match=given):
        kafka_log(Settings({"ksql.schema.registry.topic": given}), KafkaSettings("b:1"))
