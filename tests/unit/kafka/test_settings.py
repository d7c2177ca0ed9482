from __future__ import annotations

import pytest

from ksql.core.error_table import NO_BROKER
from ksql.kafka.settings import BadTimeout, KafkaSettings, KeystoreNotSupported


def settings(**properties):
    names = {name.replace("__", "."): value for name, value in properties.items()}
    return KafkaSettings.from_properties({"bootstrap.servers": "a:1", **names})


def test_a_broker_is_needed():
    with pytest.raises(NO_BROKER.base, match="no Kafka broker"):
        KafkaSettings.from_properties({"ksql.service.id": "x"})
    assert (
        KafkaSettings.from_properties({"ksql.streams.bootstrap.servers": "b:2"}).bootstrap == "b:2"
    )


def test_defaults():
    defaults = settings()
    producer = defaults.producer()
    assert producer["partitioner"] == "murmur2_random"
    assert producer["enable.idempotence"] is True
    assert defaults.producer(**{"linger.ms": 0})["linger.ms"] == 0
    assert defaults.consumer()["isolation.level"] == "read_committed"
    for client in (defaults.consumer(), producer):
        assert client["allow.auto.create.topics"] is False
    assert defaults.admin() == {
        "bootstrap.servers": "a:1",
        "log_level": 0,
        "allow.auto.create.topics": False,
    }


def test_how_long_brokers_may_be_out_of_reach():
    assert settings().timeout_s == 30
    assert settings(default__api__timeout__ms="1500").timeout_s == 1.5
    assert settings(ksql__streams__default__api__timeout__ms=2000).timeout_s == 2
    for wrong in ("soon", "0", "-1"):
        with pytest.raises(BadTimeout, match=wrong):
            settings(default__api__timeout__ms=wrong)


def test_longest_prefix_wins_and_unknown_names_are_left_out():
    settings_ = KafkaSettings.from_properties(
        {
            "bootstrap.servers": "a:1",
            "ksql.service.id": "x",
            "ksql.streams.num.stream.threads": 4,
            "ksql.streams.auto.offset.reset": "earliest",
            "compression.type": "gzip",
            "ksql.streams.compression.type": "lz4",
            "ksql.streams.producer.compression.type": "zstd",
            "ksql.streams.producer.max.request.size": 5000,
            "ksql.streams.producer.buffer.memory": 2_097_152,
            "ksql.streams.consumer.fetch.max.wait.ms": 7,
            "ksql.streams.consumer.max.poll.records": 7,
        }
    )
    producer, consumer = settings_.producer(), settings_.consumer()
    assert producer["compression.type"] == "zstd"
    assert producer["message.max.bytes"] == "5000"
    assert producer["queue.buffering.max.kbytes"] == "2048"
    assert consumer["fetch.wait.max.ms"] == "7"
    assert consumer["auto.offset.reset"] == "error"
    assert "compression.type" not in consumer
    assert "compression.type" not in settings_.admin()
    assert not any("thread" in name or "poll.records" in name for name in (*producer, *consumer))


def test_security():
    line = 'org.x.PlainLoginModule required username="al\\"ice" password=\'p;w\';'
    settings_ = settings(
        security__protocol="SASL_SSL",
        sasl__mechanism="PLAIN",
        sasl__jaas__config=line,
        ssl__endpoint__identification__algorithm="",
        ssl__truststore__type="PEM",
        ssl__truststore__location="/ca.pem",
        ssl__keystore__type="PEM",
        ssl__keystore__location="/me.pem",
    ).admin()
    assert settings_["sasl.username"] == 'al"ice'
    assert settings_["sasl.password"] == "p;w"
    assert settings_["ssl.endpoint.identification.algorithm"] == "none"
    assert settings_["ssl.ca.location"] == "/ca.pem"
    assert settings_["ssl.certificate.location"] == settings_["ssl.key.location"] == "/me.pem"


def test_java_key_stores():
    with pytest.raises(
        KeystoreNotSupported, match=r"ssl.truststore.location names a Java key store"
    ) as caught:
        settings(ssl__truststore__location="/x.jks")
    # Spark's Java client does not know ssl.ca.location
    assert "ssl.truststore.type=PEM with ssl.truststore.location" in caught.value.text()
    settings_ = settings(ssl__keystore__location="/x.p12", ssl__keystore__type="pkcs12")
    assert settings_.admin()["ssl.keystore.location"] == "/x.p12"
