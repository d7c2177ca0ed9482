"""The state directory says whose it is, and what it does not fit is refused and never deleted."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ksql.app import startup_checks
from ksql.app import state as module
from ksql.app.startup_checks import (
    NotShared,
    StartFindings,
    StateInDanger,
    check,
    check_shared_directory,
    discard_old_stores,
)
from ksql.app.state import NewerState, OlderState, StateDir
from ksql.core.config import Settings
from ksql.core.error_table import FOREIGN_STATE
from ksql.core.errors import StartError
from ksql.core.files import Trash
from ksql.core.process import lease
from ksql.core.process.lease import NotLeader
from ksql.core.process.lock import DirectoryBusy
from ksql.kafka.leadership_log import LeadershipRecord

ID = "svc_"
FIRST = StartFindings(
    bootstrap="kafka:9092",
    cluster_id="cluster1",
    topic="commands",
    topic_id="topic1",
    first=0,
    end=12,
)


@pytest.fixture
def opened(tmp_path):
    states: list[Any] = []

    def opened(service_id=ID):
        settings = Settings({"ksql.state.dir": str(tmp_path), "ksql.service.id": service_id})
        states.append(StateDir.open(settings, lambda: f"name{len(states)}"))
        return states[-1]

    yield opened
    for state in states:
        state.close()


@pytest.fixture
def state(opened):
    """A directory that was used, with a query's checkpoint and a store."""
    state = opened()
    state.belongs_to("cluster1", "topic1")
    for place in (state.queries / "CTAS_T_4", state.stores / "T"):
        place.mkdir(parents=True)
        (place / "rows").write_text("five")
    return state


def again(state, opened):
    state.close()
    return opened()


def checked(state, identity, adopt=""):
    trash = Trash(state.trash, lambda: 0)
    check(state, identity, adopt, trash)
    return sorted(moved.name.split("-")[-1] for moved in trash.entries())


# --- the marker


def test_it_remembers_what_it_belongs_to(state, opened):
    identity = again(state, opened).identity
    assert (identity.cluster_id, identity.command_topic_id) == ("cluster1", "topic1")
    assert (identity.state_id, identity.ended) == ("name0", False)


def test_one_of_the_first_format_is_left_as_it_is(tmp_path, opened):
    text = '{"format": 1, "service.id": "svc_"}'
    (tmp_path / "service.json").write_text(text)
    for _ in range(2):  # the lock was given back
        with pytest.raises(OlderState, match="older than format zero"):
            opened()
    assert (tmp_path / "service.json").read_text() == text


def test_one_of_another_service_is_refused(opened):
    opened("other_").close()
    with pytest.raises(FOREIGN_STATE.base, match=FOREIGN_STATE.pattern):
        opened()
    with pytest.raises(FOREIGN_STATE.base, match=FOREIGN_STATE.pattern):  # the lock was given back
        opened()


def test_directory_of_a_later_format_is_refused(tmp_path, opened):
    (tmp_path / "service.json").write_text('{"format": 3}')
    with pytest.raises(NewerState, match="has format 3, this version knows up to 2"):
        opened()


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"format": 2, "service.id": "svc_"}'])
def test_a_damaged_marker_is_refused(tmp_path, opened, text):
    (tmp_path / "service.json").write_text(text)
    with pytest.raises(StartError, match="is damaged"):
        opened()


# --- what it belongs to


def test_directory_with_the_same_kafka_is_accepted(state):
    assert checked(state, FIRST) == []


def test_directory_is_accepted_where_brokers_give_no_topic_ids(state):
    assert checked(state, replace(FIRST, topic_id="")) == []


def test_a_directory_from_before_the_marker_knew_is_fine_with_a_topic_that_has_commands(state):
    state.identity = type(state.identity)(service_id=ID, state_id="name0")
    assert checked(state, FIRST) == []


OTHERS = {
    "another cluster": replace(FIRST, cluster_id="cluster2"),
    "another cluster without the topic": replace(
        FIRST, cluster_id="cluster2", topic_id=None, end=0
    ),
    "no topic": replace(FIRST, topic_id=None, end=0),
    "a topic made anew": replace(FIRST, topic_id="topic2"),
    "an empty topic": replace(FIRST, end=0),
    "an emptied topic": replace(FIRST, first=12),
    "a topic without its beginning": replace(FIRST, first=3),
}


@pytest.mark.parametrize("identity", OTHERS.values(), ids=OTHERS)
def test_anything_else_is_refused_and_leaves_the_state_as_it_is(state, identity):
    with pytest.raises(StateInDanger) as refused:
        checked(state, identity)
    assert "CTAS_T_4" in refused.value.detail
    assert f"-o ksql.state.adopt={identity.word}" in refused.value.hint
    assert (state.queries / "CTAS_T_4" / "rows").read_text() == "five"
    assert (state.stores / "T" / "rows").exists()
    assert not state.trash.exists()


@pytest.mark.parametrize("name", ["no topic", "an empty topic"])
def test_so_is_a_directory_from_before_the_marker_knew(state, name):
    state.identity = type(state.identity)(service_id=ID, state_id="name0")
    with pytest.raises(StateInDanger):
        checked(state, OTHERS[name])


@pytest.mark.parametrize("identity", OTHERS.values(), ids=OTHERS)
def test_on_purpose_it_is_moved_aside(state, identity):
    assert checked(state, identity, identity.word) == ["CTAS_T_4", "T"]
    assert list(state.queries.iterdir()) == []


def test_a_word_for_something_else_does_not_count(state):
    word = OTHERS["no topic"].word
    assert OTHERS["no topic"].word == "cluster1:none"
    with pytest.raises(StateInDanger):
        checked(state, OTHERS["another cluster"], word)


def test_terminated_service_restarts_by_itself(state, opened):
    state.end()
    reopened = again(state, opened)
    assert reopened.identity.ended
    assert checked(reopened, OTHERS["no topic"]) == ["CTAS_T_4", "T"]
    reopened.belongs_to("cluster1", "topic3")
    assert not again(reopened, opened).identity.ended


def test_a_directory_without_state_follows_its_settings(state):
    (state.queries / "CTAS_T_4" / "rows").unlink()
    assert checked(state, OTHERS["another cluster"]) == ["T"]  # rows of the other cluster's table


@pytest.mark.parametrize("identity", [FIRST, *OTHERS.values()], ids=["the first", *OTHERS])
def test_a_new_directory_fits_everything(opened, identity, caplog):
    assert checked(opened(), identity) == []
    assert caplog.records == []


# --- several servers


@pytest.fixture
def sharing(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 0.1)
    states: list[Any] = []

    def sharing(name):
        settings = Settings({"ksql.state.dir": str(tmp_path), "ksql.service.id": ID})
        states.append(StateDir.open(settings, lambda: f"id{len(states)}", name))
        return states[-1]

    yield sharing
    for state in states:
        state.close()


def test_servers_share_a_directory_and_have_places_of_their_own(sharing, tmp_path):
    one, two = sharing("a_1"), sharing("a_2")
    assert one.identity == two.identity
    assert one.queries == two.queries
    assert one.trash == two.trash
    assert one.carried_out == two.carried_out
    assert len({one.stores, two.stores, one.lease, two.lease, one.own, two.own}) == 6
    assert one.lease.parent.is_dir()
    assert all(place.is_relative_to(tmp_path / "servers") for place in (one.own, two.own))


def test_no_two_servers_have_one_place(sharing):
    sharing("a_1")
    with pytest.raises(DirectoryBusy):
        sharing("a_1")


def test_shared_and_unshared_directories_do_not_mix(sharing, opened):
    one = sharing("a_1")
    with pytest.raises(DirectoryBusy):
        opened()
    one.close()
    opened()
    with pytest.raises(DirectoryBusy):
        sharing("a_1")


def test_checkpoints_are_renamed_by_each_that_takes_over(sharing):
    one, two = sharing("a_1"), sharing("a_2")
    first = one.claim(lambda: None)
    (first / "CTAS_T_4").mkdir()
    second = two.claim(lambda: None)
    assert not first.exists()
    assert [place.name for place in second.iterdir()] == ["CTAS_T_4"]
    assert one.queries == two.queries == second
    assert two.orphaned_checkpoints() == []


def test_replaced_server_renames_nothing(sharing):
    one, two = sharing("a_1"), sharing("a_2")
    one.claim(lambda: None)

    def replaced():
        two.claim(lambda: None)
        raise NotLeader("two is")

    with pytest.raises(NotLeader):
        one.claim(replaced)
    assert one.queries.name == "queries-2"


def test_claim_during_a_claim_gets_the_next_directory(sharing):
    one, two = sharing("a_1"), sharing("a_2")
    one.claim(lambda: None)
    others = [lambda: one.claim(lambda: None)]  # the former one is late: it claims once more
    lease = two.claim(lambda: others.pop()() if others else None)
    assert lease == two.queries
    assert lease.name == "queries-3"


def test_writes_of_a_replaced_server_go_where_nobody_reads(sharing):
    one, two = sharing("a_1"), sharing("a_2")
    first = one.claim(lambda: None)
    second = two.claim(lambda: None)
    (first / "CTAS_T_4" / "commits").mkdir(parents=True)
    assert two.queries == second
    assert two.orphaned_checkpoints() == [first]
    assert list(second.iterdir()) == []


def test_a_directory_is_shared_from_now_on_and_later_no_more(state, sharing, opened):
    state.close()
    one = sharing("a_1")
    lease = one.claim(lambda: None)
    assert [place.name for place in lease.iterdir()] == ["CTAS_T_4"]
    one.close()
    again = opened()
    assert again.queries.name == "queries"
    assert [place.name for place in again.queries.iterdir()] == ["CTAS_T_4"]


def test_writes_of_a_replaced_server_are_not_taken_for_checkpoints(sharing, opened):
    one, two = sharing("a_1"), sharing("a_2")
    first = one.claim(lambda: None)
    (two.claim(lambda: None) / "CTAS_T_4").mkdir()
    (first / "CTAS_T_4" / "commits").mkdir(parents=True)
    one.close()
    two.close()
    again = opened()
    assert list((again.queries / "CTAS_T_4").iterdir()) == []
    assert again.queries not in again.orphaned_checkpoints()


def test_server_follows_only_over_the_directory_of_the_leader(sharing):
    state = sharing("a_1")
    known = state.identity.state_id
    claim = LeadershipRecord(
        id="c", host="h", pid=1, state_dir="/elsewhere", state_id=known, since_ms=0
    )
    check_shared_directory(state, replace(claim, state_id=""), lambda: 0)  # of nobody who is known
    with pytest.raises(NotShared) as refused:
        check_shared_directory(state, replace(claim, state_id="another"), lambda: 0)
    assert "/elsewhere" in refused.value.text()


def test_a_copy_of_the_shared_directory_is_noticed_while_its_server_lives(sharing):
    one, state = sharing("a_1"), sharing("a_2")
    claim = LeadershipRecord(
        id="c",
        host="h",
        pid=1,
        state_dir=str(one.own),
        state_id=state.identity.state_id,
        since_ms=0,
    )
    claims = itertools.count()
    lease.write(one.lease, "c", 10)
    with pytest.raises(NotShared) as refused:  # it claims, and nothing is seen of it here
        check_shared_directory(state, claim, lambda: next(claims), lambda _seconds: None)
    assert "the original of a copy here" in refused.value.text()
    one.lease.unlink()
    with pytest.raises(NotShared):
        check_shared_directory(state, claim, lambda: next(claims), lambda _seconds: None)
    check_shared_directory(state, claim, lambda: 7, lambda _seconds: None)  # it died meanwhile
    renewed = itertools.count(20)
    check_shared_directory(
        state, claim, lambda: next(claims), lambda _s: lease.write(one.lease, "c", next(renewed))
    )


def test_copies_of_a_directory_have_other_places(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    assert len(set(map(startup_checks.machine_of, folders))) == 2
    assert startup_checks.machine_of(folders[0]) == startup_checks.machine_of(folders[0])
    folders[1].rename(tmp_path / "moved")
    assert startup_checks.machine_of(tmp_path / "moved") != startup_checks.machine_of(folders[0])


def test_places_of_servers_that_are_gone_for_long_are_moved_aside(sharing):
    one, two, three = sharing("a_1"), sharing("a_2"), sharing("a_3")
    trash = Trash(one.trash, lambda: 0)

    def look(now_ms, keep_ms=100):
        one.expire_servers(trash, keep_ms, now_ms)
        return sorted(each.name for each in (one.root / "servers").iterdir())

    assert look(0) == look(10_000) == ["a_1", "a_2", "a_3"]
    two.close()
    assert look(10_001) == look(10_101) == ["a_1", "a_2", "a_3"]
    back = sharing("a_2")
    assert look(10_500) == ["a_1", "a_2", "a_3"]
    back.close()
    assert look(10_600) == look(10_700) == look(99_999, -1) == ["a_1", "a_2", "a_3"]
    assert look(10_701) == ["a_1", "a_3"]
    [moved] = trash.entries()
    assert (moved.what, moved.origin) == ("server", str(two.own))
    three.close()
    (three.own / "gone").write_text("")  # a crash between its making and its writing
    assert look(10_702) == ["a_1", "a_3"]
    assert sharing("a_2").stores.parent.is_dir()


def test_a_directory_that_is_not_shared_has_no_such_places(state):
    state.expire_servers(Trash(state.trash, lambda: 0), 0, 10**15)
    assert state.queries.is_dir()


def test_stores_of_another_command_topic_are_moved_aside(sharing):
    one = sharing("a_1")
    (one.stores / "CTAS_T_4").mkdir(parents=True)
    moved = []
    for topic_id in ("x", "x", "y", "y"):
        discard_old_stores(SimpleNamespace(topic_id=lambda _topic, i=topic_id: i), one, lambda: 0)
        moved.append(len(Trash(one.trash, lambda: 0).entries()))
    assert moved == [0, 0, 1, 1]
    assert list(one.stores.iterdir()) == []
    (one.lease.parent / "stores.json").write_text("{")
    with pytest.raises(StartError):
        one.stores_of()
