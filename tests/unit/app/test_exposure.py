"""Doors without a lock are refused before anything is started."""

from __future__ import annotations

import pytest

from ksql.app.compose import spark_settings
from ksql.app.configuration import (
    BadSparkSecret,
    EmbeddedOpen,
    SparkOpen,
    authentication,
    check_configuration,
)
from ksql.core.config import Settings

OWN = {"bootstrap.servers": "kafka:9092", "ksql.schema.registry.url": "http://registry:8081"}
FAR = OWN | {"ksql.spark.master": "spark://master:7077"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"spark.authenticate": "false", "spark.authenticate.secret": "s"},
        {"spark.authenticate": "true"},
    ],
)
def test_a_spark_cluster_without_authentication_is_refused(more):
    with pytest.raises(SparkOpen) as refused:
        check_configuration(Settings(FAR | more))
    assert "spark://master:7077" in refused.value.message
    assert "ksql.spark.authenticate.secret.file" in refused.value.hint
    assert "ksql.spark.authenticate.required=false" in refused.value.hint


@pytest.mark.parametrize(
    "more",
    [
        {"spark.authenticate": "true", "spark.authenticate.secret": "s"},
        {"ksql.spark.authenticate.required": "false"},
        {"ksql.spark.master": "local[2]"},
    ],
)
def test_exposure_is_accepted_with_users_with_consent_or_on_loopback(more):
    check_configuration(Settings(FAR | more))


def test_the_secret_of_a_file_is_sparks(tmp_path):
    file = tmp_path / "secret"
    file.write_text("what nobody guesses\n")
    settings = Settings(FAR | {"ksql.spark.authenticate.secret.file": str(file)})
    check_configuration(settings)
    conf = spark_settings(settings, tmp_path).conf
    assert conf["spark.authenticate"] == "true"
    assert conf["spark.authenticate.secret"] == "what nobody guesses"
    assert conf["spark.network.crypto.enabled"] == "true"


@pytest.mark.parametrize("content", [None, "", "two\nlines\n"])
def test_a_file_that_holds_none_is_refused(tmp_path, content):
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
    with pytest.raises(BadSparkSecret, match="secret"):
        authentication(Settings({"ksql.spark.authenticate.secret.file": str(file)}))


OPEN = [
    {"listeners": "http://0.0.0.0:8088"},
    {"listeners": "http://127.0.0.1:8088,https://10.0.0.7:8443"},
    {"ksql.internal.listener": "http://10.0.0.7:8089"},
]


@pytest.mark.parametrize("listener", OPEN)
def test_an_embedded_broker_of_a_server_that_is_open_is_refused(listener):
    given = {"ksql.schema.registry.url": OWN["ksql.schema.registry.url"]} | listener
    with pytest.raises(EmbeddedOpen, match="broker") as refused:
        check_configuration(Settings(given))
    assert "ksql.embedded.allow.remote=true" in refused.value.hint
    check_configuration(Settings(given | {"ksql.embedded.allow.remote": "true"}))
    check_configuration(Settings(OWN | listener))


@pytest.mark.parametrize("listener", OPEN)
def test_an_embedded_registry_is_behind_its_own_listener_alone(listener):
    check_configuration(Settings({"bootstrap.servers": "k:1"} | listener))


def test_an_embedded_registry_that_listens_to_other_machines_is_refused():
    given = {"bootstrap.servers": "k:1", "ksql.schema.registry.listener": "http://10.0.0.7:8081"}
    with pytest.raises(EmbeddedOpen, match=r"10\.0\.0\.7:8081 is open to other machines"):
        check_configuration(Settings(given))
    elsewhere = given | {"ksql.schema.registry.url": "http://registry:8081"}
    check_configuration(Settings(elsewhere))


def test_an_embedded_kafka_connect_is_refused_where_others_reach_the_server():
    embedded = OWN | {"ksql.connect.embedded": "true", "listeners": "http://0.0.0.0:8088"}
    with pytest.raises(EmbeddedOpen, match="the embedded Kafka Connect knows neither users"):
        check_configuration(Settings(embedded))
    check_configuration(Settings(embedded | {"ksql.embedded.allow.remote": "true"}))
