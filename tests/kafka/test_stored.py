"""A service goes on from what an earlier version has left, on disk and in Kafka, and loses nothing.

What that version left is frozen: see tests/stored.
"""

from __future__ import annotations

import json
import shutil

import pytest
from confluent_kafka.admin import AdminClient

from ksql.kafka.admin import Admin
from ksql.kafka.settings import KafkaSettings
from tests.kafka.records import read_all
from tests.kafka.servers import Hosted
from tests.stored import directory
from tests.stored.corpora import V1
from tests.waits import await_true

NOW = directory.BEGIN_MS + 1_000_000
LATER = [
    (who, {"N": n, "PLACE": {"CITY": f"c{n}", "ZIP": n}})
    for who, n in (("ann", 10), ("dan", 20), ("bob", 30))
]
COMMANDS = f"_confluent-ksql-{directory.SERVICE_ID}_command_topic"


def settled_in(root, bootstrap):
    """The state belongs to the cluster that its topics are on now."""
    marker = root / "service.json"
    identity = json.loads(marker.read_text("utf-8"))
    identity["kafka.cluster.id"] = (
        AdminClient({"bootstrap.servers": bootstrap}).list_topics().cluster_id
    )
    identity["command.topic.id"] = Admin(KafkaSettings(bootstrap)).topic_id(COMMANDS) or ""
    marker.write_text(json.dumps(identity), "utf-8")


@pytest.fixture(scope="module")
def server(broker, runtime, tmp_path_factory):
    """A service on a copy of the frozen directory, its topics on this broker."""
    root = tmp_path_factory.mktemp("kept") / "state"
    shutil.copytree(V1 / "service" / "state", root)
    directory.restore(V1 / "service", broker.bootstrap)
    settled_in(root, broker.bootstrap)
    topic = directory.PROPERTIES["ksql.schema.registry.topic"]
    hosted = Hosted(
        broker.bootstrap,
        runtime,
        root,
        directory.SERVICE_ID,
        ksql__schema__registry__topic=topic,
    )
    try:
        hosted.start()
        yield hosted
    finally:
        hosted.stop()


def settled(server):
    """No query has failed and is tried again."""
    for running in server.service.node.runner.running.values():
        assert not running.status().failures, running.status().last_error
    return True


def counts(http):
    return {row[0]: row[1:] for row in http.rows("SELECT * FROM KEPT_COUNTS;")}


def test_restored_counts_are_there_and_counting_continues(server, broker):
    http = server.http
    await_true("all run", lambda: set(http.queries().values()) == {"RUNNING"})
    before = {"ann": [3, 9, ["c3", "c5"]], "bob": [2, 8, ["c2", "c6"]], "cyd": [1, 4, ["c4"]]}
    await_true("the table as it was", lambda: counts(http) == before)
    written = {sink: len(read_all(broker.bootstrap, sink)) for sink in SINKS}
    assert written == dict.fromkeys(SINKS, 6)
    directory.write(broker.bootstrap, "kept_clicks", LATER, NOW)
    after = {**before, "ann": [4, 19, ["c5", "c10"]], "bob": [3, 38, ["c6", "c30"]]}
    after["dan"] = [1, 20, ["c20"]]
    await_true("the table with what is new", lambda: settled(server) and counts(http) == after)
    for sink, expected in SINKS.items():
        rows = await_true(sink, lambda sink=sink: read_all(broker.bootstrap, sink)[8:])
        assert len(rows) == 1  # the old records were not read again
        values = [seen.value for seen in read_all(broker.bootstrap, sink)[6:]]
        assert values == expected


SINKS = {
    "KEPT_COUNTS": [
        {"C": 4, "TOTAL": 19, "CITIES": ["c5", "c10"]},
        {"C": 1, "TOTAL": 20, "CITIES": ["c20"]},
        {"C": 3, "TOTAL": 38, "CITIES": ["c6", "c30"]},
    ],
    "KEPT_HOURS": [{"C": 4}, {"C": 1}, {"C": 3}],
    "KEPT_NAMED": [
        {"N": 10, "NAME": "Anna"},
        {"N": 20, "NAME": None},
        {"N": 30, "NAME": "Bob"},
    ],
}


def test_the_catalog_is_what_it_was(server):
    catalog = server.http.catalog()
    assert [each["name"] for each in catalog["tables"]] == [
        "KEPT_COUNTS",
        "KEPT_HOURS",
        "KEPT_NAMES",
    ]
    assert catalog["types"] == {
        "KEPT_PLACE": {
            "type": "STRUCT",
            "fields": [
                {
                    "name": "CITY",
                    "schema": {"type": "STRING", "fields": None, "memberSchema": None},
                },
                {
                    "name": "ZIP",
                    "schema": {"type": "INTEGER", "fields": None, "memberSchema": None},
                },
            ],
            "memberSchema": None,
        }
    }
