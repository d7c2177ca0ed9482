from __future__ import annotations

import typing
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ksql.control.engine import changes as ch
from ksql.core.types.model import BIGINT, STRING
from ksql.sql.catalog.catalog import Catalog
from ksql.sql.catalog.model import PersistentQuery, Rebuild
from tests.unit.control.engine.earlier import as_before
from tests.unit.sql.catalog.test_catalog import source
from tests.unit.world import World

SETUP = "CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
PLANS = [
    World(SETUP, text).query("X").plan
    for text in (
        "CREATE STREAM X WITH (KAFKA_TOPIC='x') AS SELECT * FROM S;",
        "CREATE TABLE X WITH (KAFKA_TOPIC='x') AS SELECT K, COUNT(*) AS C FROM S "
        "WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY K;",
    )
]
PLANS.append(as_before(PLANS[1]))
names = st.sampled_from(["A", "B", "C"])
queries = st.builds(
    lambda name, plan: PersistentQuery(
        id=name, kind="CSAS", sink=name, sources=("A",), statement="", plan=plan, offset=0
    ),
    names,
    st.sampled_from(PLANS),
)
hours = st.integers(0, 2)
versions = st.builds(
    lambda query, number: replace(query, version_number=number), queries, st.integers(0, 2)
)
rebuilds = st.builds(
    lambda query, rollback: Rebuild(candidate=query, source=source(query.sink), rollback=rollback),
    versions,
    st.booleans(),
)
each = (
    st.builds(ch.PutSource, st.builds(source, names))
    | st.builds(ch.RemoveSource, names)
    | st.builds(ch.PutQuery, queries)
    | st.builds(ch.EndQuery, names)
    | st.builds(ch.PauseQuery, names, st.booleans())
    | st.builds(ch.PutType, names, st.sampled_from([BIGINT, STRING]))
    | st.builds(ch.RemoveType, names)
    | st.builds(ch.DeleteTopic, st.just("x"), st.just("1"))
    | st.builds(ch.BeginRebuild, rebuilds)
    | st.builds(ch.EndRebuild, names)
    | st.builds(lambda query, at: ch.CutOverQuery(query, source(query.sink), at), versions, hours)
    | st.builds(ch.ForgetFormer, names)
)
logs = st.lists(each, max_size=12)


def replay(log, catalog=None):
    catalog = catalog or Catalog()
    for change in log:
        catalog = ch.applied(catalog, change)
    return catalog


def content(catalog):
    parts = (dict(catalog.sources), dict(catalog.types), dict(catalog.queries))
    return (*parts, catalog.scattered, dict(catalog.rebuilds), dict(catalog.former_versions))


@given(each, logs)
def test_applying_a_change_twice_equals_once(change, before):
    once = ch.applied(replay(before), change)
    assert content(ch.applied(once, change)) == content(once)


# a cut-over keeps the version that ran: what it does depends on the commands before it
lasting = each.filter(lambda change: not isinstance(change, ch.CutOverQuery))


@given(st.lists(lasting, max_size=12))
def test_replaying_the_log_twice_equals_once(log):
    once = replay(log)
    assert content(replay(log, once)) == content(once)


@given(logs, st.integers(0, 12))
def test_a_replay_may_stop_and_continue_anywhere(log, cut):
    assert content(replay(log[cut:], replay(log[:cut]))) == content(replay(log))


def test_all_kinds_of_changes_are_tried():
    tried = {ch.PutSource, ch.RemoveSource, ch.PutQuery, ch.EndQuery, ch.PauseQuery}
    tried |= {ch.BeginRebuild, ch.EndRebuild, ch.CutOverQuery, ch.ForgetFormer}
    # nothing of the catalog
    without_memory = {ch.DeleteTopic, ch.DeleteSubject, ch.StepOver, ch.IdsFrom}
    assert tried | {ch.PutType, ch.RemoveType} | without_memory == set(typing.get_args(ch.Change))
