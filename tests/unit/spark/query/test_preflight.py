"""A checkpoint that does not fit to what Kafka has does not continue without a word."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ksql.core.errors import KsqlError
from ksql.kafka import topic_watch
from ksql.kafka.errors import KafkaUnreachable
from ksql.spark.checkpoint import checkpoint, checkpoint_topics, incarnations, plan_fingerprint
from ksql.spark.query.preflight import Preflight
from ksql.spark.query.spec import State
from tests.unit.spark.query.test_runner import Desk
from tests.unit.world import World


def having(query, name, old, new):
    """The query with another value of one of its plan's settings."""
    before, after = (json.dumps([name, value], separators=(",", ":")) for value in (old, new))
    assert before in query.plan
    return replace(query, plan=query.plan.replace(before, after))


class Kafka:
    """What the brokers hold: a mark per group, an id per topic, first offsets."""

    def __init__(self):
        self.marks = {}
        self.ids = {"s": "first", "O": "result"}
        self.begin = 0
        self.problem = None
        self.away = False
        self.now = 0.0

    def highest(self, names):
        if self.problem:
            raise self.problem
        return max((mark for name, mark in self.marks.items() if names.fullmatch(name)), default=0)

    def preflight(self):
        return Preflight(
            self.highest,
            self.topic_ids,
            lambda topics: {(name, part): self.begin for name in topics for part in (0, 1)},
            lambda: self.now,
        )

    def topic_ids(self, topics):
        if self.away:
            raise KafkaUnreachable("b:1", "away")
        return {name: self.ids[name] for name in topics if name in self.ids}


@pytest.fixture
def kafka():
    return Kafka()


@pytest.fixture(scope="module")
def plain():
    world = World(
        "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
        "CREATE STREAM O AS SELECT K, A FROM S;"
    )
    return next(iter(world.engine.catalog.queries.values()))


@pytest.fixture
def query(plain):
    return having(plain, "processing.guarantee", "at_least_once", "exactly_once_v2")


def batches(place, *, planned, committed, offset=7):
    """Write what Spark writes of so many batches."""
    for folder, count in (("offsets", planned), ("commits", committed)):
        (place / folder).mkdir(exist_ok=True)
        for batch in range(count):
            (place / folder / str(batch)).write_text(f'v1\n{{}}\n{{"s":{{"0":{offset + batch}}}}}')
    (place / "sources" / "0").mkdir(parents=True, exist_ok=True)
    (place / "sources" / "0" / "0").write_text('\0v1\n{"s":{"0":3}}')


def stopped(tmp_path, query, kafka, *, planned=3, committed=3):
    """A query that ran for some batches, and the name of one of its groups."""
    desk = Desk(tmp_path, preflight=kafka.preflight())
    desk.runner.start(query)
    desk.runner.stop(query.version)
    batches(desk.runner.checkpoint(query.version), planned=planned, committed=committed)
    return f"{desk.application()}-0-0"


def gone_on(tmp_path, query, kafka, **context):
    desk = Desk(tmp_path, preflight=kafka.preflight(), **context)
    desk.runner.resume([query])
    return desk, desk.runner.running[query.version].status()


# --- an older checkpoint


@pytest.mark.parametrize("mark", [0, 2, 3])
def test_a_checkpoint_that_planned_all_that_was_written_continues(tmp_path, query, kafka, mark):
    kafka.marks[stopped(tmp_path, query, kafka, committed=2)] = mark
    desk, status = gone_on(tmp_path, query, kafka)
    assert status.state is State.RUNNING
    assert desk.application().endswith("-life1")


@pytest.mark.parametrize("planned", [0, 3])
def test_checkpoint_older_than_written_results_is_an_error(tmp_path, query, kafka, planned):
    group = stopped(tmp_path, query, kafka, planned=planned, committed=planned)
    kafka.marks = {group: 1, f"{group[:-1]}1": planned + 1, f"{group[:-1]}2": 0}
    desk, status = gone_on(tmp_path, query, kafka)
    assert status.state is State.ERROR
    assert desk.runtime.started == []
    known = f"batch {planned - 1} as its last" if planned else "none"
    assert f"knows {known}, Kafka has batch {planned} of it" in status.last_error
    assert f"ksql.state.older={query.id}" in status.last_error
    assert f"ksql.state.anew={query.id}" in status.last_error


def test_results_of_another_incarnation_do_not_matter(tmp_path, query, kafka):
    group = stopped(tmp_path, query, kafka)
    kafka.marks[group.replace("-life1-", "-life0-")] = 99
    _, status = gone_on(tmp_path, query, kafka)
    assert status.state is State.RUNNING


def test_marks_are_those_of_queries_that_write_exactly_once(tmp_path, plain, kafka):
    kafka.marks[stopped(tmp_path, plain, kafka)] = 99
    _, status = gone_on(tmp_path, plain, kafka)
    assert status.state is State.RUNNING


def test_unknown_end_offset_is_not_zero(tmp_path, query, kafka):
    stopped(tmp_path, query, kafka)
    kafka.problem = KafkaUnreachable("b:1", "away")
    desk, status = gone_on(tmp_path, query, kafka)
    assert status.state is State.ERROR
    assert "b:1 cannot be reached" in status.last_error
    kafka.problem = None
    running = desk.runner.running[query.version]
    running.start()
    assert running.status().state is State.RUNNING


@pytest.mark.parametrize("allowed", ["all", "this"])
def test_an_older_one_continues_under_a_new_name_when_that_is_allowed(
    tmp_path, query, kafka, allowed, caplog
):
    kafka.marks[stopped(tmp_path, query, kafka)] = 9
    older = frozenset({query.id if allowed == "this" else allowed})
    for _ in range(2):  # the second start needs no word any more
        desk = Desk(tmp_path, preflight=kafka.preflight(), names=lambda: "second", older=older)
        desk.runner.resume([query])
        assert desk.application().endswith("-second")
        place = desk.runner.checkpoint(query.version)
        assert incarnations.incarnation_of(place) == incarnations.Incarnation("second")
        assert checkpoint.planned(place).batch == 2
        assert desk.trash.entries() == []
        desk.runner.stop(query.version)
        older = frozenset()
    assert "query_continues_from_an_older_checkpoint" in caplog.text


def test_all_queries_can_be_restarted_on_request(tmp_path, query, kafka):
    kafka.marks[stopped(tmp_path, query, kafka)] = 9
    desk = Desk(
        tmp_path, preflight=kafka.preflight(), names=lambda: "second", start_over=frozenset({"all"})
    )
    desk.runner.resume([query])
    assert desk.application().endswith("-second")
    assert checkpoint.planned(desk.runner.checkpoint(query.version)) is None
    (moved,) = desk.trash.entries()
    assert moved.reason == "its query starts over"


def test_offsets_are_checked_at_each_start_not_only_at_the_first(tmp_path, query, kafka):
    group = stopped(tmp_path, query, kafka)
    desk, _ = gone_on(tmp_path, query, kafka)
    kafka.marks[group] = 9  # the copy was put back while the query rested
    with pytest.raises(incarnations.OlderCheckpoint):
        desk.runner.running[query.version].start()


@pytest.mark.parametrize("choice", ["older", "start_over"])
def test_a_permit_is_over_once_the_checkpoint_fits(tmp_path, query, kafka, choice):
    group = stopped(tmp_path, query, kafka)
    desk, _ = gone_on(tmp_path, query, kafka, **{choice: frozenset({"all"})})
    kafka.marks[group] = 9  # the copy was put back while the query rested
    with pytest.raises(incarnations.OlderCheckpoint):
        desk.runner.running[query.version].start()
    assert desk.trash.entries() == []


# --- a topic that was made again


def test_the_ids_of_the_topics_are_written_before_the_first_start(tmp_path, query, kafka):
    stopped(tmp_path, query, kafka)
    place = tmp_path / "queries" / query.id
    assert json.loads((place / "topics.json").read_text()) == {
        "version": 1,
        "topics": {"s": "first"},
    }


def test_a_topic_that_was_recreated_is_an_error(tmp_path, query, kafka):
    stopped(tmp_path, query, kafka)
    kafka.ids["s"] = "second"
    for _ in range(2):
        desk, status = gone_on(tmp_path, query, kafka)
        assert status.state is State.ERROR
        assert desk.runtime.started == []
        assert 'topic "s" was deleted and recreated' in status.last_error
        assert "s: first, now second" in status.last_error
        assert f"ksql.state.anew={query.id}" in status.last_error


def test_it_restarts_over_the_new_topic(tmp_path, query, kafka):
    stopped(tmp_path, query, kafka)
    kafka.ids["s"] = "second"
    desk, status = gone_on(tmp_path, query, kafka, start_over=frozenset({query.id}))
    assert status.state is State.RUNNING
    place = desk.runner.checkpoint(query.version)
    assert checkpoint.planned(place) is None
    assert checkpoint_topics.read(place) == {"s": "second"}


def test_a_topic_that_was_deleted_is_an_error_that_names_it_until_it_is_back(
    tmp_path, query, kafka
):
    stopped(tmp_path, query, kafka)
    kafka.ids = {"t": "other"}
    desk, status = gone_on(tmp_path, query, kafka)
    assert status.state is State.ERROR
    assert desk.runtime.started == []
    assert f'topic "s", which query {query.id} reads, was deleted' in status.last_error
    assert "s: first" in status.last_error
    assert f"TERMINATE {query.id}" in status.last_error
    kafka.ids = {"s": "first", "O": "result"}
    desk.runner.running[query.version].start()
    assert desk.runner.running[query.version].status().state is State.RUNNING


def test_a_result_that_was_deleted_is_an_error_until_there_is_such_a_topic(tmp_path, query, kafka):
    stopped(tmp_path, query, kafka)
    del kafka.ids["O"]
    desk, status = gone_on(tmp_path, query, kafka)
    assert status.state is State.ERROR
    assert desk.runtime.started == []
    assert f'topic "O", which query {query.id} writes, was deleted' in status.last_error
    assert f"TERMINATE {query.id}" in status.last_error
    kafka.ids["O"] = "another"
    assert judged(desk, query) is None


def test_a_topic_that_was_never_there_is_left_to_the_start_itself(tmp_path, query, kafka):
    kafka.ids = {}
    desk = Desk(tmp_path, preflight=kafka.preflight())
    desk.runner.start(query)
    assert desk.runner.running[query.version].status().state is State.RUNNING


def test_a_topic_without_an_id_is_not_judged(tmp_path, query, kafka):
    stopped(tmp_path, query, kafka)
    kafka.ids["s"] = ""
    _, status = gone_on(tmp_path, query, kafka)
    assert status.state is State.RUNNING
    kafka.ids["s"] = "second"  # it is still known what it was
    _, status = gone_on(tmp_path, query, kafka)
    assert status.state is State.ERROR


def test_a_checkpoint_that_has_no_ids_adopts_them(tmp_path, query, kafka):
    stopped(tmp_path, query, kafka)
    place = tmp_path / "queries" / query.id
    (place / "topics.json").unlink()
    kafka.ids["s"] = "second"
    _, status = gone_on(tmp_path, query, kafka)
    assert status.state is State.RUNNING
    assert checkpoint_topics.read(place) == {"s": "second"}


def judged(desk, query):
    """The outcome of another launch."""
    try:
        desk.runner.running[query.version].start()
    except KsqlError as error:
        return type(error)
    desk.runner.stop(query.version)
    return None


def without_ids(tmp_path, query, kafka):
    stopped(tmp_path, query, kafka)
    place = tmp_path / "queries" / query.id
    (place / "topics.json").unlink()
    kafka.ids = {}
    desk, status = gone_on(tmp_path, query, kafka)
    assert "(its id was s: unknown)" in status.last_error
    assert checkpoint_topics.read(place) == {}
    return desk


def test_checkpoint_without_ids_does_not_adopt_a_missing_topic(tmp_path, query, kafka):
    desk = without_ids(tmp_path, query, kafka)
    kafka.now += topic_watch.GONE_S
    assert judged(desk, query) is checkpoint_topics.TopicGone
    kafka.ids = {"s": "second"}
    again, status = gone_on(tmp_path, query, kafka)
    assert "s: unknown, now second" in status.last_error
    assert judged(again, query) is checkpoint_topics.TopicRecreated


@pytest.mark.parametrize("between", ["soon", "away"])
def test_a_topic_that_was_only_missed_for_a_moment_is_adopted(tmp_path, query, kafka, between):
    desk = without_ids(tmp_path, query, kafka)
    if between == "soon":
        kafka.now += topic_watch.GONE_S - 1
    else:
        kafka.now += 1
        kafka.away = True
        assert judged(desk, query) is KafkaUnreachable
        kafka.now += topic_watch.GONE_S
        kafka.away = False
    assert judged(desk, query) is checkpoint_topics.TopicGone
    kafka.ids = {"s": "first", "O": "result"}
    assert judged(desk, query) is None


def test_an_incarnation_that_restarts_has_the_shape_of_its_plan(tmp_path, query, kafka):
    stopped(tmp_path, query, kafka)
    kafka.ids["s"] = "second"
    desk, _ = gone_on(tmp_path, query, kafka, start_over=frozenset({query.id}))
    assert plan_fingerprint.read(desk.runner.checkpoint(query.version))["id"] == query.id


@pytest.mark.parametrize("choice", ["older", "start_over"])
def test_an_incarnation_that_could_not_be_launched_is_launched_at_the_next_try(
    tmp_path, query, kafka, choice
):
    kafka.marks[stopped(tmp_path, query, kafka)] = 9

    def named():
        kafka.away = True  # from now on, in the midst of the launch
        return "second"

    chosen = {choice: frozenset({query.id})}
    desk = Desk(tmp_path, preflight=kafka.preflight(), names=named, **chosen)
    desk.runner.resume([query])
    assert desk.runtime.started == []
    kafka.away = False
    assert judged(desk, query) is None
    assert desk.application().endswith("-second")


def test_offsets_of_a_topic_that_was_not_read_lately_are_no_matter():
    then = {"s": "first", "t": "first"}
    now = {"s": "first", "t": "second"}
    assert topic_watch.recreated(then, now, {"s"}) == {}
    assert checkpoint_topics.kept(then, now, {"s"}) == now
    assert checkpoint_topics.kept(then, {"t": "second"}, {"s"}) == now


@pytest.mark.parametrize(
    ("planned", "committed", "ends"),
    [
        (3, 3, {0: 7, 1: 8, 2: 0}),
        (3, 2, {0: 7, 1: 0, 2: 0}),
        (1, 1, {0: 0}),
        (1, 0, {0: 0, "start": 0}),
    ],
)
def test_data_loss_option_reads_it_from_its_beginning(
    tmp_path, query, kafka, planned, committed, ends, caplog
):
    query = having(query, "ksql.query.fail.on.data.loss", "true", "false")
    stopped(tmp_path, query, kafka, planned=planned, committed=committed)
    kafka.ids["s"] = "second"
    for _ in range(2):
        desk, status = gone_on(tmp_path, query, kafka)
        assert status.state is State.RUNNING, status.last_error
        desk.runner.stop(query.version)
    place = tmp_path / "queries" / query.id
    offsets = {
        int(file.name): json.loads(file.read_text().splitlines()[2])["s"]
        for file in (place / "offsets").iterdir()
    }
    first = json.loads((place / "sources" / "0" / "0").read_text().splitlines()[1])["s"]
    starts = {"0": 0, "1": 0}
    expected = {b: (starts if end == 0 else {"0": end}) for b, end in ends.items() if b != "start"}
    assert offsets == expected
    assert first == (starts if "start" in ends else {"0": 3})
    assert caplog.text.count("remade_topic_read_from_its_beginning") == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "topics": []}'])
def test_ids_that_cannot_be_read(tmp_path, text):
    (tmp_path / "topics.json").write_text(text)
    with pytest.raises(checkpoint.CheckpointDamaged):
        checkpoint_topics.read(tmp_path)
