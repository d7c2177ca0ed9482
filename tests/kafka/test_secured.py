"""The examples of docs/kafka-security.md reach a broker, by each client that the service has.

Those are librdkafka's, Spark's Java client, and kafka-python's for the records of the epoch.
"""

from __future__ import annotations

import re

import pytest

from server.propertiesfile import parse_properties
from tests.kafka.records import read_all, unique
from tests.kafka.secured import PASSWORD, USER, quoted, secured_broker
from tests.kafka.servers import ROOT, ServerProcess, command
from tests.waits import await_true

PAGE = ROOT / "docs/kafka-security.md"
EXAMPLES = {
    section[1]: section[2]
    for section in re.finditer(
        r"^## ([^\n]+)\n(?:(?!^## ).)*?^```properties\n(.*?)^```$",
        PAGE.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        yield running


def adapted(example, broker):
    """The example with what is this broker's."""
    address = broker.sasl if "sasl" in example else broker.tls
    for theirs, ours in (
        ("kafka.example.com:9093", address),
        ("/etc/ksql/kafka-ca.pem", str(broker.authority)),
        ("/etc/ksql/kafka-client.pem", str(broker.client)),
        ('username="ksql"', f"username={quoted(USER)}"),
        ('password="her password"', f"password={quoted(PASSWORD)}".replace("\\", "\\\\")),
    ):
        example = example.replace(theirs, ours)
    assert "/etc/ksql" not in example
    assert "example.com" not in example
    return example


def test_there_is_an_example_of_each_kind():
    kinds = {
        (given["security.protocol"], given.get("sasl.mechanism"))
        for given in map(parse_properties, EXAMPLES.values())
    }
    assert kinds == {("SASL_SSL", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-512"), ("SSL", None)}


@pytest.mark.parametrize(
    "name",
    [
        next(iter(EXAMPLES)),
        *(pytest.param(each, marks=pytest.mark.proof) for each in list(EXAMPLES)[1:]),
    ],
)
def test_a_service_runs_with_the_example(name, broker, tmp_path):
    file = tmp_path / "ksql.properties"
    file.write_text(adapted(EXAMPLES[name], broker), encoding="utf-8")
    source, sink = unique("SECURED").upper(), unique("SEEN").upper()
    server = ServerProcess(
        tmp_path / "log",
        script=[*command("server"), "--config", str(file)],
        ksql__state__dir=str(tmp_path / "state"),
        ksql__service__id=unique("secured") + "_",
        ksql__schema__registry__topic=unique("_schemas"),
    )
    try:
        server.http.ksql(
            f"CREATE STREAM {source} (k STRING KEY, n INT) "
            f"WITH (KAFKA_TOPIC='{source}', PARTITIONS=1, VALUE_FORMAT='JSON');"
            f"CREATE STREAM {sink} AS SELECT k, n * 2 AS twice FROM {source};"
            f"INSERT INTO {source} (ROWTIME, k, n) VALUES (0, 'epoch', 1);"
            f"INSERT INTO {source} (k, n) VALUES ('now', 2);"
        )
        seen = await_true("both", lambda: (s := read_all(broker.plain, sink))[1:] and s)
        assert [(each.key, each.value["TWICE"]) for each in seen] == [("epoch", 2), ("now", 4)]
        assert seen[0].timestamp == 0
        server.stop()
    finally:
        server.kill()
    assert PASSWORD not in (tmp_path / "log").read_text()
