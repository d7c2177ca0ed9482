"""Whom a read is sent to, after what others have answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.cluster.members import Server
from ksql.cluster.replicas.failover import NoReplica, ReplicaDown, ReplicaRefused, Route
from ksql.cluster.replicas.replica_status import MISSING, ReplicaStatus, StalenessLimits

A, B, C = (Server(name, 1) for name in "abc")
STANDBYS = StalenessLimits(standby_reads=True, restoring=True)


class Way(Route):
    """A way, and whether somebody has answered at its end."""

    answered = False


def restoring(lag):
    return ReplicaRefused(ReplicaStatus(state="RESTORING", offset_lag=lag, position=5))


def route_of(allowed, outcomes, order=(A, B, C), **more):
    """Who is asked, one after the other, if each answers so; and the way itself."""
    route = Way(order=order, allowed=allowed, **more)
    tried = []
    while (step := route.next()) is not None:
        server, terms = step
        tried.append((server, "running" if terms.running else "any", terms.limited))
        outcome = outcomes[server]
        if isinstance(outcome, ReplicaRefused) and terms.accept(outcome.status):
            route.answered = True
            break
        route.note(server, outcome)
    return tried, route


def test_active_replica_is_queried_first_and_without_limits_where_none_is_stated():
    servers, _ = route_of(
        STANDBYS, {A: ReplicaRefused(ReplicaStatus(state="RUNNING", offset_lag=9))}
    )
    assert servers == [(A, "running", False)]


@pytest.mark.parametrize("limit", [{"offset_lag": 8}, {"time_lag_ms": 8}])
def test_a_stated_limit_binds_the_active_copy_too(limit):
    """It is a follower of its topic, and one that returns from a pause is behind."""
    behind = ReplicaRefused(ReplicaStatus(state="RUNNING", offset_lag=9, time_lag_ms=9))
    within = ReplicaRefused(ReplicaStatus(state="RUNNING", offset_lag=8, time_lag_ms=8))
    servers, _ = route_of(StalenessLimits(**limit), {A: within})
    assert servers == [(A, "running", True)]
    servers, _ = route_of(StalenessLimits(**limit), {A: behind, B: within})
    assert servers == [(A, "running", True), (B, "running", True)]
    servers, route = route_of(StalenessLimits(**limit), {A: behind, B: behind, C: behind})
    assert not route.answered
    assert route.is_waiting()


def test_without_standby_reads_nobody_replaces_a_dead_server():
    servers, route = route_of(StalenessLimits(), {A: ReplicaDown("gone")})
    assert servers == [(A, "running", False)]
    assert not route.is_waiting()
    assert route.reasons() == {"a:1": "gone"}


def test_while_the_active_copy_is_not_there_yet_the_next_that_runs_answers():
    outcomes = {
        A: ReplicaRefused(MISSING),
        B: restoring(2),
        C: ReplicaRefused(ReplicaStatus(state="RUNNING")),
    }
    servers, _ = route_of(StalenessLimits(), outcomes)
    assert [server for server, *_ in servers] == [A, B, C]


def test_if_all_are_being_restored_the_way_may_be_tried_again():
    servers, route = route_of(
        StalenessLimits(), {A: restoring(3), B: restoring(2), C: ReplicaRefused(MISSING)}
    )
    assert [server for server, *_ in servers] == [A, B, C]
    assert route.is_waiting()


def test_standbys_are_queried_by_least_lag_then_by_restored_rows():
    outcomes = {A: ReplicaDown("gone"), B: restoring(7), C: restoring(4)}
    servers, _ = route_of(STANDBYS, outcomes, lags={B: 9, C: 1})
    assert servers == [
        (A, "running", False),
        (C, "running", True),
        (B, "running", True),
        (C, "any", True),
    ]


def test_replica_within_the_limits_is_not_awaited_while_the_active_server_is_down():
    allowed = StalenessLimits(standby_reads=True, restoring=True, offset_lag=0)
    behind = ReplicaRefused(ReplicaStatus(state="RUNNING", offset_lag=1))
    servers, route = route_of(
        allowed, {A: ReplicaDown("gone"), B: behind, C: ReplicaRefused(MISSING)}
    )
    assert [server for server, *_ in servers] == [A, B, C]
    assert not route.is_waiting()


def test_a_stated_lag_lets_only_the_active_copy_answer_early_without_standbys():
    allowed = StalenessLimits(restoring=True, offset_lag=3)
    servers, _ = route_of(allowed, {A: restoring(3), B: restoring(0), C: ReplicaRefused(MISSING)})
    assert servers[-1] == (A, "any", True)
    servers, route = route_of(
        allowed, {A: restoring(4), B: restoring(0), C: ReplicaRefused(MISSING)}
    )
    assert [server for server, *_ in servers] == [A, B, C]
    assert route.is_waiting()


def test_replica_behind_the_position_is_not_queried_again():
    servers, _ = route_of(STANDBYS, {A: restoring(0)}, order=(A,), at_least=6)
    assert servers == [(A, "running", False)]


OUTCOMES = st.one_of(
    st.builds(ReplicaDown, st.just("gone")),
    st.builds(
        lambda state, lag: ReplicaRefused(ReplicaStatus(state=state, offset_lag=lag)),
        st.sampled_from(["RESTORING", "MISSING"]),
        st.one_of(st.none(), st.integers(0, 9)),
    ),
)
ALLOWED = st.builds(
    StalenessLimits,
    standby_reads=st.booleans(),
    restoring=st.booleans(),
    offset_lag=st.one_of(st.none(), st.integers(0, 9)),
)


@given(st.permutations([A, B, C]), st.tuples(OUTCOMES, OUTCOMES, OUTCOMES), ALLOWED)
def test_every_way_ends_and_no_copy_answers_beyond_what_is_allowed(order, given_, allowed):
    outcomes = dict(zip((A, B, C), given_, strict=True))
    servers, route = route_of(allowed, outcomes, order=order)
    assert len(servers) <= 6
    assert len(set(servers)) == len(servers)
    assert servers[0] == (order[0], "running", allowed.is_limited)
    for server, how, limited in servers:
        if how == "any":
            assert limited
            assert allowed.restoring
            assert allowed.standby_reads or server == order[0]
    if not route.answered:
        for server, outcome in outcomes.items():
            ours = allowed.standby_reads or server == order[0]
            if isinstance(outcome, ReplicaRefused) and outcome.status.state == "RESTORING":
                within = allowed.covers(outcome.status)
                assert not (allowed.restoring and ours and within)


def test_the_error_names_partition_and_reasons():
    error = NoReplica("T", 3, {"b:1": "gone", "a:1": "it holds no copy"})
    assert "Unable to execute pull query" in error.message
    assert "partition 3 of T" in error.message
    assert error.detail == "a:1: it holds no copy; b:1: gone"
    assert error.code == 50302


@pytest.mark.parametrize("standby_reads", [True, False])
def test_all_down_is_nothing_to_wait_for(standby_reads):
    allowed = StalenessLimits(standby_reads=standby_reads)
    _, route = route_of(allowed, {A: ReplicaDown("x"), B: ReplicaDown("y"), C: ReplicaDown("z")})
    assert not route.is_waiting()
