from __future__ import annotations

import pytest

from ksql.core.config import InvalidProperty
from ksql.kafka.settings import BadClientProperty, BadTimeout, KeystoreNotSupported, check_clients


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"ksql.service.id": "x", "listeners": "http://h:1", "auto.offset.reset": "earliest"},
        {"ksql.streams.producer.linger.ms": "5", "acks": "all", "buffer.memory": "1048576"},
        {"bootstrap.servers": "nowhere:1", "ksql.streams.consumer.fetch.max.bytes": "1000000"},
    ],
)
def test_properties_that_the_clients_take(properties):
    check_clients(properties)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"ksql.streams.producer.linger.ms": "soon"}, "queue.buffering.max.ms"),
        ({"acks": "maybe"}, "request.required.acks"),
        ({"ksql.streams.fetch.max.bytes": "-5"}, "outside allowed range"),
        ({"security.protocol": "TLS"}, '"TLS"'),
    ],
)
def test_a_property_that_a_client_refuses_is_named(wrong, reason):
    with pytest.raises(BadClientProperty) as caught:
        check_clients({"ksql.streams.retries": "5", **wrong})
    assert caught.value.message.endswith(f"its configuration: {', '.join(wrong)}")
    assert reason in caught.value.detail


def test_properties_that_are_refused_together():
    together = {"enable.idempotence": "true", "acks": "1"}
    with pytest.raises(BadClientProperty) as caught:
        check_clients({**together, "linger.ms": "1"})
    assert "acks" in caught.value.detail


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({"default.api.timeout.ms": "never"}, BadTimeout),
        ({"buffer.memory": "much"}, InvalidProperty),
        ({"ssl.truststore.location": "a.jks"}, KeystoreNotSupported),
    ],
)
def test_untranslatable_client_properties(properties, error):
    with pytest.raises(error):
        check_clients(properties)
