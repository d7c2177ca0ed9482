"""The topics of queries, as those that read them know them."""

from __future__ import annotations

from dataclasses import replace

from ksql.spark.query.links import Links
from tests.unit.world import World


class Runtime:
    """Notes who is waited for in Spark."""

    def __init__(self):
        self.waited_for = []
        self.seen = []
        self.forgotten = {}

    def announce(self, name, link):
        self.waited_for.append((name, link.sink))
        self.seen.append([*self.waited_for])

    def forget(self, name, begun):
        self.forgotten[name] = begun
        self.waited_for = [each for each in self.waited_for if each[0] != name]
        self.seen.append([*self.waited_for])


def test_readers_know_a_query_before_its_former_version_is_forgotten():
    world = World(
        "CREATE STREAM S (K STRING KEY, V INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);",
        "CREATE STREAM C AS SELECT * FROM S;",
    )
    former = world.query("C")
    query = replace(former, version_number=1)
    runtime = Runtime()
    links = Links(runtime, "")
    links.begin(former)
    old, new = (each.version.spark_name("") for each in (former, query))
    runtime.waited_for = [(old, "C")]
    links.replace(former.version, query)
    assert runtime.seen == [[(old, "C"), (new, "C")], [(new, "C")]]
    assert list(links.all) == [new]


def test_what_begins_before_the_end_of_a_query_does_not_bring_it_back():
    world = World(
        "CREATE STREAM S (K STRING KEY, V INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);",
        "CREATE STREAM C AS SELECT * FROM S;",
    )
    query = world.query("C")
    runtime = Runtime()
    links = Links(runtime, "")
    links.begin(query)
    [(name, before)] = links.all.items()
    links.end(query.version)
    links.begin(query)
    assert before.begun < runtime.forgotten[name] < links.all[name].begun
