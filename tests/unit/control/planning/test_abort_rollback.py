"""ABORT UPGRADE, ROLLBACK UPGRADE, and what goes with a query that has other versions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.control.engine.changes import (
    BeginRebuild,
    CutOverQuery,
    DeleteTopic,
    EndQuery,
    EndRebuild,
    ForgetFormer,
    RemoveSource,
    applied,
)
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.core.types.schema import Column, Schema
from ksql.sql.catalog.model import CutOver, Rebuild
from ksql.sql.plan import codec
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
R = S.replace("STREAM S", "STREAM R").replace("'s'", "'r'")
COUNT = "CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
READER = "CREATE TABLE M AS SELECT K, C FROM N;"
ID = QueryId("CTAS_N_1")
CANDIDATE = QueryVersion(ID, 7).results_topic("default_")
FORMER = QueryVersion(ID).results_topic("default_")


def dry_run(world, text):
    return world.engine.dry_run(world.parse(text), text, world.settings)


def begin(world, number=7, **changes):
    """Let a candidate of the table be built, whose results have a topic."""
    query = replace(world.query("N"), version_number=number, offset=number, **changes)
    world.topic(query.version.results_topic("default_"))
    rebuild = Rebuild(candidate=query, source=world.catalog.source("N"))
    world.engine.catalog = applied(world.catalog, BeginRebuild(rebuild))
    return query


def cut_over(world, *, source=None):
    """Cut the table over to its candidate, which keeps the first version as the former one."""
    query = replace(begin(world), cut_over=CutOver(8, 0))
    world.topic(FORMER)
    new = source or world.catalog.source("N")
    world.engine.catalog = applied(world.catalog, CutOverQuery(query, new, 5000))
    world.topics.delete([CANDIDATE])


@pytest.fixture
def world():
    return World(S, COUNT)


# --- abort


def test_abort_ends_the_candidate_and_deletes_its_results(world):
    begin(world)
    prepared = dry_run(world, "ABORT UPGRADE OF n;")
    identity = world.topics.identity(CANDIDATE)
    assert prepared.changes == (EndRebuild(ID), DeleteTopic(CANDIDATE, identity))
    assert (prepared.message, prepared.query_id) == ("Rebuild of CTAS_N_1 aborted", ID)
    assert prepared.command_id == "upgrade/`N`/abort"


def test_abort_of_a_candidate_without_results_deletes_nothing(world):
    begin(world)
    world.topics.delete([CANDIDATE])
    assert dry_run(world, "ABORT UPGRADE OF N;").changes == (EndRebuild(ID),)


def test_abort_of_a_rollback_keeps_the_former_versions_results(world):
    cut_over(world)
    rollback = dry_run(world, "ROLLBACK UPGRADE OF N;")
    world.engine.catalog = applied(world.catalog, *rollback.changes)
    prepared = dry_run(world, "ABORT UPGRADE OF N;")
    assert prepared.changes == (EndRebuild(ID),)
    assert prepared.message == "Rollback of CTAS_N_1 aborted"


def test_abort_needs_a_rebuild(world):
    error = world.refuse("ABORT UPGRADE OF N;")
    assert error.message == "CTAS_N_1 is not being rebuilt"
    assert error.hint == "SHOW UPGRADES FOR N; shows the upgrades that have ended."


def test_a_name_that_is_not_there(world):
    error = world.refuse("ABORT UPGRADE OF NN;")
    assert error.message == "Source NN does not exist."


@pytest.mark.parametrize("text", ["ABORT UPGRADE OF S;", "ROLLBACK UPGRADE OF S;"])
def test_a_declared_stream_has_no_upgrades(world, text):
    assert "it was declared" in world.refuse(text).message


def test_a_query_that_was_terminated_has_no_upgrades(world):
    world.run("TERMINATE CTAS_N_1;")
    assert "its query was terminated" in world.refuse("ABORT UPGRADE OF N;").message


# --- rollback


def test_rollback_continues_the_former_version_as_a_candidate(world):
    first, source = world.query("N"), world.catalog.source("N")
    cut_over(world)
    prepared = dry_run(world, "ROLLBACK UPGRADE OF N;")
    [begun] = prepared.changes
    candidate = begun.rebuild.candidate
    plan = codec.loads(candidate.plan)
    assert plan.sink.topic == FORMER == "_confluent-ksql-default_query_CTAS_N_1-v0-changelog"
    back = replace(plan, sink=replace(plan.sink, topic=source.topic))
    assert back == codec.loads(first.plan)
    assert (candidate.version, candidate.offset, candidate.cut_over) == (first.version, 0, None)
    assert (begun.rebuild.source, begun.rebuild.rollback) == (source, True)
    assert (prepared.message, prepared.new_topics) == ("Rollback of CTAS_N_1 begun", ())


def test_rollback_of_a_stream_makes_the_topic_of_its_muted_results():
    world = World(S, "CREATE STREAM F WITH (PARTITIONS=3) AS SELECT K, A FROM S;")
    query, source = world.query("F"), world.catalog.source("F")
    new = replace(query, version_number=7, cut_over=CutOver(8, 0))
    begun = applied(world.catalog, BeginRebuild(Rebuild(candidate=new, source=source)))
    world.engine.catalog = applied(begun, CutOverQuery(new, source, 5000))
    [topic] = dry_run(world, "ROLLBACK UPGRADE OF F;").new_topics
    assert topic.name == query.version.results_topic("default_")
    assert (topic.partitions, topic.configs["cleanup.policy"]) == (3, "delete")


def test_rollback_of_a_query_that_was_never_rebuilt(world):
    error = world.refuse("ROLLBACK UPGRADE OF N;")
    assert error.message == "CTAS_N_1 has no former version"
    assert "never rebuilt" in error.detail
    assert "SHOW UPGRADES FOR N;" in error.hint


def test_rollback_after_the_former_version_has_expired(world):
    cut_over(world)
    world.engine.catalog = applied(world.catalog, ForgetFormer(ID))
    assert "not kept any longer" in world.refuse("ROLLBACK UPGRADE OF N;").detail


def test_rollback_while_a_rebuild_is_under_way(world):
    cut_over(world)
    begin(world, 9)
    error = world.refuse("ROLLBACK UPGRADE OF N;")
    assert error.message == "CTAS_N_1 is being rebuilt by another statement"
    assert "ABORT UPGRADE OF N;" in error.hint


def added(world):
    """Return the table with one more column, which the former version does not have."""
    source = world.catalog.source("N")
    more = Column("T", source.schema.value[0].type)
    return replace(source, schema=Schema((*source.schema.columns, more)))


def test_rollback_that_takes_a_column_from_a_reader(world):
    world.run(READER)
    cut_over(world, source=added(world))
    error = world.refuse("ROLLBACK UPGRADE OF N;")
    assert "other rows than its readers know" in error.message
    assert "`T` BIGINT" in error.detail
    assert "CTAS_M_2" in error.detail


def test_rollback_may_take_a_column_that_nobody_reads(world):
    cut_over(world, source=added(world))
    [begun] = dry_run(world, "ROLLBACK UPGRADE OF N;").changes
    assert "T" not in {column.name for column in begun.rebuild.source.schema.columns}


def test_rollback_to_what_reads_a_source_that_is_gone(world):
    cut_over(world)
    world.engine.catalog = world.catalog.without_source("S")
    error = world.refuse("ROLLBACK UPGRADE OF N;")
    assert error.detail == "It reads S, which does not exist any more."


@pytest.mark.parametrize("upgrade_id", ["default_/CTAS_N_1/0", "default_/CTAS_N_1/0-12"])
def test_rollback_to_the_version_that_is_kept(world, upgrade_id):
    cut_over(world)
    assert dry_run(world, f"ROLLBACK UPGRADE OF N TO '{upgrade_id}';").changes


@pytest.mark.parametrize("upgrade_id", ["default_/CTAS_N_1/7", "default_/CTAS_N_1/01", "x"])
def test_rollback_to_another_version(world, upgrade_id):
    cut_over(world)
    error = world.refuse(f"ROLLBACK UPGRADE OF N TO '{upgrade_id}';")
    assert error.message == f"CTAS_N_1 cannot go back to '{upgrade_id}'"
    assert "'default_/CTAS_N_1/0'" in error.detail


# --- the end of a query


def deleted(changes):
    return [change.name for change in changes if isinstance(change, DeleteTopic)]


@pytest.mark.parametrize("text", ["TERMINATE CTAS_N_1;", "TERMINATE ALL;", "DROP TABLE N;"])
def test_the_end_of_a_query_deletes_the_results_of_all_its_versions(world, text):
    cut_over(world)
    begin(world, 9)
    nine = QueryVersion(ID, 9).results_topic("default_")
    changes = dry_run(world, text).changes
    assert changes[0] == EndQuery(ID)
    assert deleted(changes) == [FORMER, nine]


def test_the_results_of_a_rollback_are_deleted_once(world):
    cut_over(world)
    rollback = dry_run(world, "ROLLBACK UPGRADE OF N;")
    world.engine.catalog = applied(world.catalog, *rollback.changes)
    assert deleted(dry_run(world, "TERMINATE CTAS_N_1;").changes) == [FORMER]


def test_a_drop_deletes_the_results_after_its_own_topic(world):
    begin(world)
    changes = dry_run(world, "DROP TABLE N DELETE TOPIC;").changes
    assert changes[1] == RemoveSource("N")
    assert deleted(changes) == ["N", CANDIDATE]


def test_what_only_a_candidate_reads_cannot_be_dropped(world):
    world.run(R)
    begin(world, sources=("R",))
    assert "[CTAS_N_1]" in world.refuse("DROP STREAM R;").message


def test_a_pause_deletes_nothing(world):
    begin(world)
    assert deleted(dry_run(world, "PAUSE CTAS_N_1;").changes) == []
