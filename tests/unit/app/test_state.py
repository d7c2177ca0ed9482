"""The state directory says whose it is, and what it does not fit is refused and never deleted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ksql.app.belonging import Found, StateInDanger, check
from ksql.app.state import ForeignState, NewerState, StateDir
from ksql.base.aside import Aside
from ksql.base.config import Settings
from ksql.base.errors import StartError

ID = "svc_"
FIRST = Found(
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


def checked(state, found, adopt=""):
    aside = Aside(state.aside, lambda: 0)
    check(state, found, adopt, aside)
    return sorted(moved.name.split("-")[-1] for moved in aside.entries())


# --- the marker


def test_it_remembers_what_it_belongs_to(state, opened):
    identity = again(state, opened).identity
    assert (identity.cluster_id, identity.command_topic_id) == ("cluster1", "topic1")
    assert (identity.state_id, identity.ended) == ("name0", False)


def test_one_of_the_first_format_is_taken_over(tmp_path, opened):
    (tmp_path / "service.json").write_text('{"format": 1, "service.id": "svc_"}')
    identity = opened().identity
    assert (identity.state_id, identity.cluster_id) == ("name0", "")
    assert json.loads((tmp_path / "service.json").read_text())["format"] == 2


@pytest.mark.parametrize("version", [1, 2])
def test_one_of_another_service_is_refused(tmp_path, opened, version):
    if version == 1:
        (tmp_path / "service.json").write_text('{"format": 1, "service.id": "other_"}')
    else:
        opened("other_").close()
    with pytest.raises(ForeignState):
        opened()
    with pytest.raises(ForeignState):  # the lock was given back
        opened()


def test_one_of_a_later_format_is_refused(tmp_path, opened):
    (tmp_path / "service.json").write_text('{"format": 3}')
    with pytest.raises(NewerState, match="has format 3, this version knows up to 2"):
        opened()


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"format": 2, "service.id": "svc_"}'])
def test_a_damaged_marker_is_refused(tmp_path, opened, text):
    (tmp_path / "service.json").write_text(text)
    with pytest.raises(StartError, match="is damaged"):
        opened()


# --- what it belongs to


def test_what_it_was_used_with_is_fine(state):
    assert checked(state, FIRST) == []


def test_so_is_a_topic_of_brokers_that_tell_no_ids(state):
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


@pytest.mark.parametrize("found", OTHERS.values(), ids=OTHERS)
def test_anything_else_is_refused_and_leaves_the_state_as_it_is(state, found):
    with pytest.raises(StateInDanger) as refused:
        checked(state, found)
    assert "CTAS_T_4" in refused.value.detail
    assert f"-o ksql.state.adopt={found.word}" in refused.value.hint
    assert (state.queries / "CTAS_T_4" / "rows").read_text() == "five"
    assert (state.stores / "T" / "rows").exists()
    assert not state.aside.exists()


@pytest.mark.parametrize("name", ["no topic", "an empty topic"])
def test_so_is_a_directory_from_before_the_marker_knew(state, name):
    state.identity = type(state.identity)(service_id=ID, state_id="name0")
    with pytest.raises(StateInDanger):
        checked(state, OTHERS[name])


@pytest.mark.parametrize("found", OTHERS.values(), ids=OTHERS)
def test_on_purpose_it_is_moved_aside(state, found):
    assert checked(state, found, found.word) == ["CTAS_T_4", "T"]
    assert list(state.queries.iterdir()) == []


def test_a_word_for_something_else_does_not_count(state):
    word = OTHERS["no topic"].word
    assert OTHERS["no topic"].word == "cluster1:none"
    with pytest.raises(StateInDanger):
        checked(state, OTHERS["another cluster"], word)


def test_a_service_that_was_terminated_begins_anew_without_being_asked(state, opened):
    state.end()
    reopened = again(state, opened)
    assert reopened.identity.ended
    assert checked(reopened, OTHERS["no topic"]) == ["CTAS_T_4", "T"]
    reopened.belongs_to("cluster1", "topic3")
    assert not again(reopened, opened).identity.ended


def test_a_directory_without_state_follows_its_settings(state):
    (state.queries / "CTAS_T_4" / "rows").unlink()
    assert checked(state, OTHERS["another cluster"]) == ["T"]  # rows of the other cluster's table


@pytest.mark.parametrize("found", [FIRST, *OTHERS.values()], ids=["the first", *OTHERS])
def test_a_new_directory_fits_everything(opened, found, caplog):
    assert checked(opened(), found) == []
    assert caplog.records == []
