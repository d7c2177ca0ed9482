"""A cut-over's steps before a launch: each is done once, and what fails is done again."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from ksql.control.engine.ports import MemoryLog
from ksql.core.error_table import CUT_OVER_CANCELLED, FORMER_NOT_KEPT, LAUNCH_ENDED, ROWS_LOST
from ksql.core.errors import ServerError
from ksql.core.process.lease import Lease, NotLeader
from ksql.core.query_version import QueryVersion
from ksql.exec.ports import DifferenceCounts, FirstBatch
from ksql.kafka.topic_difference import (
    CopyPosition,
    Counts,
    Equalized,
    PartitionsDiffer,
    RowsAhead,
)
from ksql.spark.checkpoint import cut_over_mark, results_topic
from ksql.spark.checkpoint.checkpoint import CheckpointDamaged
from ksql.spark.checkpoint.cut_over_mark import CutOverMark
from ksql.spark.query.cut_over import CutOverCompletion, ResultsGone
from ksql.spark.query.spec import QuerySpec
from ksql.sql.catalog.model import CutOver
from ksql.sql.plan import codec
from tests.unit.world import World
from tests.waits import PATIENCE_S

SERVICE = "default_"
NOW_MS = 1_700_000_000_000
SOURCE = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
COUNTED = "CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
COUNTS = Counts(changed=1, added=2, removed=3, equal=4)


class Topics:
    """Notes what is done; ``fails`` is the step that fails, ``within`` is called in each copy."""

    def __init__(self, hidden):
        self.present, self.ids, self.lost = {hidden}, {}, set()
        self.done, self.writings, self.fails, self.foreign = [], [], "", 0
        self.within, self.small = lambda: None, True

    def _step(self, *step):
        if self.fails in step:
            raise ServerError("Kafka is away")
        self.done.append(step)

    def names(self):
        return tuple(self.present)

    def exists(self, topic):
        return topic in self.present

    def topic_id(self, topic):
        return self.ids.get(topic, "first") if topic in self.present else None

    def has_lost(self, topic):
        return topic in self.lost

    def common_size(self, origin, target):
        if self.fails == "common_size":
            raise PartitionsDiffer(origin, 1, target, 2)
        return 1

    def make_like(self, topic, like):
        self._step("make", topic, like)
        self.present.add(topic)
        self.ids[topic] = "kept"

    def copy_position(self, origin, target, now_ms):
        return CopyPosition((origin, self.ids.get(target, "")), {0: len(self.done)}, now_ms)

    def follow(self, origin, target, since, writing, check, *, decided=False):
        if since.ids != (origin, self.ids.get(target)):
            return None
        self._step("follow", origin, target, since.offsets[0], decided)
        self.within()
        check()
        return Equalized(Counts())

    def read_ahead(self, origin, target, directory, now_ms, check):
        self._step("read ahead", origin, target)
        assert list(directory.iterdir()) == []
        (directory / "rows-0").write_text("what a process has written")
        check()
        if self.small:
            return None
        position = CopyPosition(("its id", "the other's"), {0: 5}, now_ms)
        return RowsAhead(str(directory), position, position)

    def equalize(self, origin, target, writing, check, *, decided=False, ahead=None):
        how = "decided" if decided else "ahead" if ahead is not None else ""
        self._step("equalize", origin, target, *([how] if how else ()))
        self.within()
        check()
        writing.may_write()
        self.writings.append(writing)
        return Equalized(COUNTS, self.foreign, () if writing.strict else ("it is too large",))

    def delete(self, topic):
        self._step("delete", topic)
        self.present.discard(topic)


class Room:
    def __init__(self, place: Path, text=COUNTED):
        world = World(SOURCE + text, log=MemoryLog())
        (query,) = world.catalog.queries.values()
        self.query = replace(query, version_number=17, cut_over=CutOver(33, 4))
        self.hidden = self.query.version.results_topic(SERVICE)
        self.former = self.hidden.replace("-v17-", "-v4-")
        self.place = self.query.version.checkpoint(place)
        self.former_place = QueryVersion(self.query.id, 4).checkpoint(place)
        for folder in (self.place, self.former_place):
            folder.mkdir()
        cut_over_mark.write(self.former_place, CutOverMark(number=5, done=True))
        self.topics = Topics(self.hidden)

    def complete(self, query=None, completion=None, hosted=None, **spec):
        query = query or self.query
        hosted = {query.version} if hosted is None else hosted
        launch = QuerySpec(
            version=query.version,
            plan_json="",
            topics={},
            checkpoint=self.place,
            producer={"acks": "all"},
            application_id="app",
            **spec,
        )
        completion = completion or self.completion()
        completion.complete(query, launch, SERVICE, hosted)
        for deletion in completion.copies.deletions.values():
            deletion.join()

    def completion(self, *note):
        return CutOverCompletion(self.topics, lambda: NOW_MS, *note)

    @property
    def old(self):
        """The query as long as the candidate is built."""
        return replace(self.query, version_number=4, cut_over=CutOver(5, 0))

    def copy_ahead(self, completion, hosted=None):
        """Do what comes before both versions are stopped."""
        hosted = {self.old.version, self.query.version} if hosted is None else hosted

        def launch():
            return QuerySpec(
                version=self.query.version,
                plan_json="",
                topics={},
                checkpoint=self.place,
                sink_topic=self.hidden,
            )

        completion.copies.copy_ahead(self.old, launch, SERVICE, hosted)

    def discard(self, completion, version, *running):
        directory = self.place.parent
        completion.copies.discard(
            version, running, lambda version: version.checkpoint(directory), SERVICE
        )

    @property
    def candidate(self):
        """The query as long as it is built: it writes to the hidden topic."""
        plan = codec.loads(self.query.plan)
        plan = replace(plan, sink=replace(plan.sink, topic=self.hidden))
        return replace(self.query, plan=codec.dumps(plan), cut_over=None)

    def launch_candidate(self):
        CutOverCompletion(self.topics).note_rows(self.candidate, self.place, SERVICE)

    def check_comparable(self):
        completion = CutOverCompletion(self.topics)
        completion.check_comparable(self.query, self.candidate, self.place)

    @property
    def steps(self):
        return [
            ("make", self.former, "N"),
            ("equalize", "N", self.former),
            ("equalize", self.hidden, "N"),
            ("delete", self.hidden),
        ]


@pytest.fixture
def room(tmp_path):
    return Room(tmp_path)


def first_of(room, query=None):
    """The first batch of the version that took over, as the history of upgrades gets it."""
    completion = CutOverCompletion(room.topics)
    return completion.first_batch(
        query or room.query, room.place, lambda timeout_s: FirstBatch(7, str(timeout_s)), 1.5
    )


def test_the_history_gets_what_the_cut_over_has_written(room):
    room.complete()
    assert first_of(room) == FirstBatch(7, "1.5", DifferenceCounts(1, 2, 3, 4))


@pytest.mark.parametrize("number", [33, 34])
def test_it_gets_nothing_of_a_difference_that_is_not_written_yet(room, number):
    done = CutOverMark(number=32, done=True) if number == 33 else CutOverMark(number=33)
    cut_over_mark.write(room.place, done)
    assert first_of(room).difference is None


def test_a_stream_has_no_difference(tmp_path):
    room = Room(tmp_path, "CREATE STREAM N AS SELECT * FROM S;")
    room.complete()
    assert first_of(room).difference is None


def test_a_table_gets_the_rows_of_the_version_that_took_over(room):
    room.complete()
    assert room.topics.done == room.steps
    mark = CutOverMark(number=33, snapshot=True, done=True, **COUNTS._asdict())
    assert cut_over_mark.read(room.place) == mark


@pytest.mark.parametrize("exactly_once", [False, True])
def test_it_is_written_as_the_query_writes(room, exactly_once):
    room.complete(exactly_once=exactly_once)
    for writing in room.topics.writings:
        name = "app-cutover" if exactly_once else None
        assert writing[:2] == ({"acks": "all"}, name)
        assert writing.now_ms == NOW_MS


def test_rows_that_the_topic_does_not_take_are_left_out_where_the_query_leaves_them_out(
    room, caplog
):
    room.complete()
    room.topics.present.add(room.hidden)
    room.complete(replace(room.query, cut_over=CutOver(50, 4)), strict=False)
    left = [record for record in caplog.records if record.message == "row_left_out"]
    assert [(each.query_id, each.reason) for each in left] == [("CTAS_N_1", "it is too large")] * 2


def test_rows_of_somebody_else_are_named_in_the_log(room, caplog):
    room.topics.foreign = 3
    room.complete()
    left = [record for record in caplog.records if record.message == "foreign_rows_left_out"]
    assert [(each.topic, each.rows) for each in left] == [("N", 3), (room.hidden, 3)]


def test_what_was_copied_ahead_is_only_brought_up_to_date(room):
    completion = room.completion()
    room.copy_ahead(completion)
    ahead = [
        ("make", room.former, "N"),
        ("equalize", "N", room.former, "decided"),
        ("read ahead", room.hidden, "N"),
        ("follow", "N", room.former, 1, True),
    ]
    assert room.topics.done == ahead
    assert results_topic.is_copy(room.former_place, room.former)
    room.complete(completion=completion)
    assert room.topics.done[4:] == [("follow", "N", room.former, 3, False), *room.steps[2:]]
    assert results_topic.read(room.former_place, room.former) == "kept"
    check_kept(room)


def test_rows_that_were_read_ahead_are_not_read_again(room):
    completion, files = room.completion(), room.place / "ahead"
    room.topics.small = False
    room.copy_ahead(completion)
    room.copy_ahead(completion)  # the first try has failed
    room.topics.done.clear()
    room.topics.fails = "N"
    with pytest.raises(ServerError, match="Kafka is away"):
        room.complete(completion=completion)
    assert files.is_dir()
    room.topics.fails = ""
    room.complete(completion=completion)
    assert ("equalize", room.hidden, "N", "ahead") in room.topics.done
    assert not files.exists()


def test_what_a_server_that_died_has_read_ahead_is_deleted(room):
    room.topics.small = False
    room.copy_ahead(room.completion())
    room.complete()
    assert room.topics.done[-2:] == room.steps[-2:]
    assert not (room.place / "ahead").exists()


def test_a_second_try_brings_the_copy_of_the_first_up_to_date(room):
    completion = room.completion()
    room.copy_ahead(completion)
    room.copy_ahead(completion)
    followed = [step for step in room.topics.done if step[0] == "follow"]
    assert followed == [("follow", "N", room.former, at, True) for at in (1, 3, 4)]


@pytest.mark.parametrize("what", ["deleted", "another server"])
def test_a_copy_that_cannot_be_brought_up_to_date_is_made_anew(room, what):
    completion = room.completion()
    room.copy_ahead(completion)
    if what == "deleted":
        room.topics.ids[room.former] = "another"
    else:
        completion = None
    room.complete(completion=completion)
    assert room.topics.done[4:] == room.steps


@pytest.mark.parametrize("step", ["make", "equalize", "follow"])
def test_a_copy_that_failed_is_made_anew(room, step):
    completion = room.completion()
    room.topics.fails = step
    with pytest.raises(ServerError, match="Kafka is away"):
        room.copy_ahead(completion)
    assert results_topic.is_copy(room.former_place, room.former)
    room.topics.fails = ""
    room.topics.done.clear()
    room.copy_ahead(completion)
    assert [each[0] for each in room.topics.done] == [
        "make",
        "equalize",
        "read ahead",
        "follow",
    ]


@pytest.mark.parametrize("ended", [4, 17])
def test_a_copy_is_deleted_when_a_version_is_ended_meanwhile(room, ended):
    completion = room.completion()
    hosted = {room.old.version, room.query.version}
    room.topics.within = lambda: hosted.discard(QueryVersion(room.query.id, ended))
    with pytest.raises(CUT_OVER_CANCELLED.base, match="was ended while its rebuilt version"):
        room.copy_ahead(completion, hosted)
    assert room.topics.done[-1] == ("delete", room.former)
    assert not results_topic.is_copy(room.former_place, room.former)


def test_a_version_that_does_not_run_is_copied_all_the_same(room):
    """It is left behind."""
    room.copy_ahead(room.completion(), {room.query.version})
    assert room.topics.done[0] == ("make", room.former, "N")


@pytest.mark.parametrize("why", ["stream", "own rows"])
def test_nothing_is_copied_of_what_a_rollback_does_not_need(tmp_path, why):
    room = Room(tmp_path, "CREATE STREAM N AS SELECT * FROM S;" if why == "stream" else COUNTED)
    if why == "own rows":  # its own cut-over is not completed
        cut_over_mark.write(room.former_place, CutOverMark(number=5, snapshot=True))
    room.copy_ahead(room.completion())
    assert room.topics.done == []


def test_running_version_that_is_launched_again_keeps_the_copy(room):
    """Its own topic had the same name, and is deleted at each launch."""
    completion = room.completion()
    room.copy_ahead(completion)
    launch = QuerySpec(
        version=room.old.version, plan_json="", topics={}, checkpoint=room.former_place
    )
    completion.complete(room.old, launch, SERVICE, {room.old.version})
    assert completion.copies.deletions == {}
    assert results_topic.is_copy(room.former_place, room.former)
    again = room.completion()  # after a restart nobody knows where the copy is
    again.complete(room.old, launch, SERVICE, {room.old.version})
    again.copies.deletions[room.former].join()
    assert room.former not in room.topics.present
    assert not results_topic.is_copy(room.former_place, room.former)


@pytest.mark.parametrize("server", ["the same", "another"])
@pytest.mark.parametrize("given_up", ["candidate", "query"])
def test_a_copy_is_deleted_with_its_candidate_or_its_query(room, server, given_up):
    completion = room.completion()
    room.copy_ahead(completion)
    if server == "another":
        completion = room.completion()
    if given_up == "candidate":
        room.discard(completion, room.query.version, room.old.version)
    else:
        room.discard(completion, room.old.version)
    assert room.topics.done[-1] == ("delete", room.former)
    assert not results_topic.is_copy(room.former_place, room.former)


def test_a_copy_is_deleted_with_its_candidate_while_the_query_is_paused(room):
    completion = room.completion()
    room.copy_ahead(completion)
    room.discard(completion, room.query.version)
    assert room.topics.done[-1] == ("delete", room.former)
    assert not results_topic.is_copy(room.former_place, room.former)


def test_a_copy_stays_when_another_version_is_given_up(room):
    completion = room.completion()
    room.copy_ahead(completion)
    room.discard(completion, QueryVersion(room.query.id, 2), room.old.version, room.query.version)
    assert room.former in room.topics.present


def test_rows_that_are_kept_are_no_copy_any_more(room):
    completion = room.completion()
    room.copy_ahead(completion)
    room.complete(completion=completion)
    room.discard(completion, QueryVersion(room.query.id, 2), room.old.version, room.query.version)
    assert room.former in room.topics.present


def test_copy_that_cannot_be_looked_for_keeps_nothing_from_its_end(room, caplog):
    (room.former_place / "results.json").write_text("{")
    room.discard(room.completion(), room.old.version)
    assert "results_topic_left" in caplog.text
    assert room.topics.done == []


def test_part_of_a_copy_is_nothing_to_go_back_to(room):
    """The new version begins with an empty state, and so completes no cut-over."""
    room.copy_ahead(room.completion())
    cut_over_mark.write(room.place, CutOverMark(number=33, done=True))
    with pytest.raises(ROWS_LOST.base, match="does not have all of them"):
        check_kept(room)


def test_difference_is_written_down_once_by_each_server(room):
    """So a history has it that a restart has cut short."""
    noted: list[object] = []
    completion = room.completion(lambda *difference: noted.append(difference))
    for _ in range(2):
        room.complete(completion=completion)
    difference = (room.query.version, DifferenceCounts(1, 2, 3, 4))
    assert noted == [difference]
    room.complete(completion=room.completion(lambda *difference: noted.append(difference)))
    assert noted == [difference] * 2


def test_it_is_done_once(room):
    room.complete()
    room.complete()
    assert room.topics.done == [*room.steps, ("delete", room.hidden)]


def test_a_later_cut_over_is_another_one(room):
    room.complete()
    room.topics.present.add(room.hidden)
    room.complete(replace(room.query, cut_over=CutOver(50, 4)))
    assert room.topics.done == room.steps * 2
    mark = cut_over_mark.read(room.place)
    assert mark is not None
    assert mark.number == 50


@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_failed_is_done_at_the_next_launch(room, at):
    room.topics.fails = ("make", "equalize", room.hidden)[at]
    with pytest.raises(ServerError, match="Kafka is away"):
        room.complete()
    assert room.topics.done == room.steps[:at]
    mark = cut_over_mark.read(room.place)
    assert mark == CutOverMark(number=33, snapshot=at == 2)
    room.topics.fails = ""
    room.topics.done.clear()
    room.complete()
    assert room.topics.done == room.steps[2 if at == 2 else 0 :]


def test_a_topic_that_cannot_be_deleted_is_left_to_the_next_launch(room, caplog):
    room.topics.fails = "delete"
    room.complete()
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == [
        "results_topic_left"
    ]
    room.topics.fails = ""
    room.complete()
    assert room.topics.done == room.steps


def test_without_the_rows_of_the_version_nothing_is_deleted(room):
    room.topics.present.clear()
    with pytest.raises(ResultsGone, match=room.hidden) as caught:
        room.complete()
    assert room.topics.done == []
    assert "ksql.state.anew=CTAS_N_1" in caught.value.text()


def test_rows_of_a_topic_that_was_recreated_are_not_compared(room):
    """It lacks the rows from before: they would be deleted from the result."""
    room.launch_candidate()
    room.check_comparable()
    room.topics.ids[room.hidden] = "second"
    for step in (room.launch_candidate, room.check_comparable):
        with pytest.raises(ROWS_LOST.base, match="was deleted and recreated"):
            step()
    with pytest.raises(ResultsGone, match="was deleted and recreated"):
        room.complete()
    assert room.topics.done == []


def test_rows_of_a_topic_that_has_lost_its_beginning_are_not_compared(room):
    """Somebody has deleted records, or given it a retention."""
    room.launch_candidate()
    room.topics.lost.add(room.hidden)
    for step in (room.launch_candidate, room.check_comparable):
        with pytest.raises(ROWS_LOST.base, match="has lost its first records"):
            step()
    with pytest.raises(ResultsGone, match="has lost its first records"):
        room.complete()
    assert room.topics.done == []


def test_former_version_of_a_topic_that_has_lost_its_beginning_does_not_continue(room):
    room.complete()
    room.topics.lost.add(room.former)
    with pytest.raises(ROWS_LOST.base, match="has lost its first records"):
        check_kept(room)


def test_a_candidate_without_its_topic_is_not_cut_over(room):
    room.launch_candidate()
    room.topics.present.clear()
    room.launch_candidate()  # the preflight refuses it, if it has written
    with pytest.raises(ROWS_LOST.base, match=r"was deleted$"):
        room.check_comparable()


def test_a_candidate_whose_topic_has_another_size_is_not_cut_over(room):
    room.topics.fails = "common_size"
    with pytest.raises(PartitionsDiffer):
        room.check_comparable()


def test_brokers_that_give_no_ids_are_believed(room):
    room.topics.ids[room.hidden] = ""
    room.launch_candidate()
    room.check_comparable()
    room.topics.ids[room.hidden] = "second"
    room.launch_candidate()
    room.topics.ids[room.hidden] = ""
    room.check_comparable()


def test_a_streams_candidate_has_no_rows_to_lose(tmp_path):
    room = Room(tmp_path, "CREATE STREAM N AS SELECT K, A FROM S;")
    room.launch_candidate()
    room.topics.ids[room.hidden] = "second"
    room.launch_candidate()
    room.check_comparable()


def test_a_server_that_does_not_lead_writes_nothing(room, tmp_path):
    with pytest.raises(NotLeader):
        room.complete(lease=Lease(str(tmp_path / "gone"), "claim"))
    assert room.topics.writings == []
    assert cut_over_mark.read(room.place) == CutOverMark(number=33)


def test_a_stream_has_its_results_already(tmp_path):
    room = Room(tmp_path, "CREATE STREAM N AS SELECT K, A FROM S;")
    room.topics.present.clear()
    room.complete()
    assert room.topics.done == [("delete", room.hidden)]
    assert cut_over_mark.read(room.place) == CutOverMark(number=33, snapshot=True, done=True)


def test_neither_a_query_without_a_cut_over_nor_a_candidate_has_any(room):
    plan = codec.loads(room.query.plan)
    plan = replace(plan, sink=replace(plan.sink, topic=room.hidden))
    room.complete(replace(room.query, cut_over=None))
    room.complete(replace(room.query, plan=codec.dumps(plan)))
    assert room.topics.done == []
    assert cut_over_mark.read(room.place) is None


@pytest.mark.parametrize(
    "text",
    ["{", '{"version": 1, "number": 1}', None],
    ids=["cut off", "fields missing", "no flag"],
)
def test_a_damaged_mark_is_an_error(room, text):
    cut_over_mark.write(room.place, CutOverMark(number=1))
    file = room.place / "cutover.json"
    file.write_text(text or file.read_text().replace("false", "0"))
    with pytest.raises(CheckpointDamaged, match=r"cutover\.json is damaged"):
        room.complete()


def test_topics_of_versions_that_no_command_has_made_are_deleted(room):
    hidden, never = room.hidden, room.hidden.replace("-v17-", "-v18-")
    others = {
        never.replace("query_CTAS_N", "query_CTAS_OTHER"),
        never.replace("default_", "other_"),
        never.replace("-v18-", "-store-"),
        "N",
    }
    room.topics.present |= {never, *others}
    CutOverCompletion(room.topics).sweep([room.query.version], SERVICE)
    assert room.topics.present == {hidden, *others}


def test_a_topic_that_cannot_be_deleted_now_is_left(room, caplog):
    never = room.hidden.replace("-v17-", "-v18-")
    room.topics.present |= {never}
    room.topics.fails = "delete"
    CutOverCompletion(room.topics).sweep([room.query.version], SERVICE)
    assert "results_topic_left" in caplog.text


def test_launch_waits_for_one_that_was_given_up_and_writes_still(room):
    """The query would write newer rows, and the former launch older ones after them."""
    completion = room.completion()
    begun, over = Event(), Event()
    equalize = room.topics.equalize

    def slow(*difference, **how):
        begun.set()
        assert over.wait(PATIENCE_S)
        return equalize(*difference, **how)

    room.topics.equalize = slow
    launches = [
        Thread(target=room.complete, kwargs={"completion": completion}, daemon=True)
        for _ in range(2)
    ]
    for launch in launches:
        launch.start()
    assert begun.wait(PATIENCE_S)
    over.set()
    for launch in launches:
        launch.join(PATIENCE_S)
    assert [step for step in room.topics.done if step[0] != "delete"] == room.steps[:3]


def test_launch_of_a_query_that_was_ended_writes_no_more(room):
    hosted = {room.query.version}
    equalize = room.topics.equalize

    def ended_within(*difference, **how):
        equalized = equalize(*difference, **how)
        hosted.clear()
        return equalized

    room.topics.equalize = ended_within
    with pytest.raises(LAUNCH_ENDED.base, match="was ended while its cut-over was completed"):
        room.complete(hosted=hosted)
    assert len(room.topics.writings) == 1
    room.topics.equalize = equalize
    hosted.add(room.query.version)
    room.complete(hosted=hosted)  # a query that was paused continues
    assert room.topics.done[-2:] == room.steps[-2:]


@pytest.mark.parametrize("mark", [None, CutOverMark(number=5, snapshot=True)])
def test_former_version_that_never_took_over_keeps_its_own_rows(room, mark):
    """The result's topic has rows of the version before it."""
    if mark is None:
        (room.former_place / "cutover.json").unlink()
    else:
        cut_over_mark.write(room.former_place, mark)
    results_topic.write(room.former_place, room.former, "first")
    room.topics.present.add(room.former)
    room.complete()
    assert room.topics.done == room.steps[2:]
    check_kept(room)
    room.topics.present.discard(room.former)
    with pytest.raises(ROWS_LOST.base):
        check_kept(room)


def test_first_version_needs_no_cut_over_to_have_rows(room):
    room.complete(replace(room.query, cut_over=CutOver(33, 0)))
    assert room.topics.done[0][0] == "make"


def test_former_version_with_a_damaged_mark_keeps_no_other_from_its_launch(room):
    (room.former_place / "cutover.json").write_text("{")
    room.complete()
    assert room.topics.done == room.steps


def check_kept(room, query=None):
    CutOverCompletion(room.topics).check_kept(query or room.query, room.place, SERVICE)


@pytest.mark.parametrize("step", ["make", "equalize"])
def test_former_version_does_not_continue_before_its_rows_are_kept(room, step):
    """The launch that is tried again would set its topic back to them."""
    room.topics.fails = step
    with pytest.raises(ServerError, match="Kafka is away"):
        room.complete()
    with pytest.raises(FORMER_NOT_KEPT.base, match="cannot be rolled back yet"):
        check_kept(room)
    room.topics.fails = room.hidden
    with pytest.raises(ServerError, match="Kafka is away"):
        room.complete()
    check_kept(room)  # whatever becomes of the difference
    with pytest.raises(FORMER_NOT_KEPT.base, match="cannot be rolled back yet"):
        check_kept(room, replace(room.query, cut_over=CutOver(34, 17)))


@pytest.mark.parametrize(("now", "what"), [("second", " and recreated$"), (None, "deleted$")])
def test_former_version_whose_rows_are_lost_does_not_continue(room, now, what):
    room.complete()
    check_kept(room)
    room.topics.ids[room.former] = now
    with pytest.raises(ROWS_LOST.base, match=what):
        check_kept(room)


def test_a_later_topic_of_a_former_version_is_its_own(room):
    """The version is cut over and rolled back to: its topic is deleted and made once more."""
    results_topic.write(room.former_place, room.former, "of an earlier cut-over")
    room.launch_candidate()
    room.complete()
    check_kept(room)
    assert results_topic.read(room.former_place, room.former) == "kept"
    assert results_topic.read(room.place, room.hidden) == ""


def test_query_without_a_cut_over_keeps_no_rows(room):
    check_kept(room, replace(room.query, cut_over=None))
