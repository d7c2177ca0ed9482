"""Input that nobody wishes for, on the real road: each kind has a clear outcome."""

from __future__ import annotations

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.kafka.wires import await_true, create_topic, produce, read_all, topics


def deleted(scene):
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    admin.delete_topics([scene.src])[scene.src].result(30)
    await_true("it is gone", lambda: scene.src not in topics(scene.bootstrap))


def counting(scene, http, properties=None):
    """The id of a query that has counted one record."""
    scene.declare(http, properties or {})
    (query,) = http.queries()
    assert scene.count() == 1
    return query


def the_error(http, query, part):
    """The newest error of a query that is in ERROR, once it has that part."""

    def newest():
        if http.queries()[query] != "ERROR":
            return ""
        errors = http.one(f"EXPLAIN {query};")["queryDescription"]["queryErrors"]
        return errors[-1]["errorMessage"] if part in errors[-1]["errorMessage"] else ""

    return await_true(f"{query} in ERROR: {part}", newest)


def test_a_topic_that_is_deleted_under_a_query_is_an_error_that_names_it(scene):
    with scene.served() as http:
        query = counting(scene, http)
        deleted(scene)
        error = the_error(http, query, "was deleted")
        assert f'topic "{scene.src}", which query {query} reads, was deleted' in error
        assert f"TERMINATE {query}" in error
        assert f"ksql.state.anew={query}" in error


def test_one_that_is_made_anew_under_a_query_is_not_read_from_the_middle(scene):
    """More records than the former topic had: the query's offset is one of the new topic's."""
    with scene.served() as http:
        query = counting(scene, http)
        deleted(scene)
        create_topic(scene.bootstrap, scene.src)
        error = the_error(http, query, "was deleted and made anew")
        assert f'topic "{scene.src}"' in error
        produce(scene.bootstrap, scene.src, [("k", {"N": n}) for n in range(5)])
        before = read_all(scene.bootstrap, scene.dst)
        assert [seen.value["C"] for seen in before] == [1]
    with scene.served() as http:
        assert http.queries() == {query: "ERROR"}
        assert read_all(scene.bootstrap, scene.dst) == before
    with scene.served(ksql__state__anew=query) as http:
        await_true(
            "all of the new topic",
            lambda: read_all(scene.bootstrap, scene.dst)[-1].value["C"] == 5,
        )
        assert http.queries() == {query: "RUNNING"}


def test_one_that_may_lose_data_reads_the_new_topic_from_its_beginning(scene):
    with scene.served() as http:
        query = counting(scene, http, {"ksql.query.fail.on.data.loss": "false"})
        deleted(scene)
        the_error(http, query, "was deleted")
        create_topic(scene.bootstrap, scene.src)
        produce(scene.bootstrap, scene.src, [("k", {"N": n}) for n in range(5)])
        await_true(
            "its state and all of the new topic",
            lambda: read_all(scene.bootstrap, scene.dst)[-1].value["C"] == 6,
        )
        await_true("it runs", lambda: http.queries() == {query: "RUNNING"})


def test_unread_records_that_are_gone_are_an_error_that_names_the_partition(scene):
    with scene.served() as http:
        query = counting(scene, http)
        http.ksql(f"PAUSE {query};")
        produce(scene.bootstrap, scene.src, [("k", {"N": n}) for n in range(5)])
        admin = AdminClient({"bootstrap.servers": scene.bootstrap})
        place = TopicPartition(scene.src, 0, 4)
        admin.delete_records([place])[place].result(30)
        http.ksql(f"RESUME {query};")
        error = the_error(http, query, "are gone")
        assert f"{scene.src}-0" in error
        assert "ksql.query.fail.on.data.loss" in error
