"""A checkpoint of another plan is not read as if it were the query's own."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from ksql.exec.dataflow.query_start import plan_of
from ksql.spark.checkpoint import checkpoint, cut_over_mark, plan_fingerprint
from ksql.spark.query.spec import State
from ksql.sql.catalog.model import CutOver
from ksql.sql.plan import codec
from tests.unit.spark.query.test_runner import Desk
from tests.unit.world import World

SOURCE = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
GROUPED = "CREATE TABLE O AS SELECT K, {} FROM S {} GROUP BY K;"


def query_of(statement, *later):
    world = World(SOURCE + statement, *later)
    (query,) = world.engine.catalog.queries.values()
    return query


def shape_of(query):
    return plan_fingerprint.shape_of(query.id, plan_of(query))


def begun(tmp_path, query):
    """The checkpoint of a query that has run."""
    desk = Desk(tmp_path)
    desk.runner.start(query)
    desk.runner.stop(query.version)
    return desk.runner.checkpoint(query.version)


def gone_on(tmp_path, query, **context):
    desk = Desk(tmp_path, **context)
    desk.runner.resume([query])
    return desk, desk.runner.running[query.version].status()


def test_it_is_written_before_the_first_start(tmp_path):
    query = query_of(GROUPED.format("COUNT(*) AS C", "WINDOW TUMBLING (SIZE 1 MINUTE)"))
    place = begun(tmp_path, query)
    assert json.loads((place / "shape.json").read_text()) == {
        "version": 1,
        "shape": {
            "id": query.id,
            "sink": "O",
            "topics": "s",
            "steps": "aggregate TUMBLING 60000 by 60000 ms",
            "buckets": str(plan_of(query).buckets),
            "lanes": str(plan_of(query).lanes),
        },
    }


def test_replaceable_parts_are_not_in_the_fingerprint():
    first = GROUPED.format("COUNT(*) AS C", "")
    more = GROUPED.format("COUNT(*) AS C, SUM(A) AS D", "WHERE A > 1").replace(
        "CREATE", "CREATE OR REPLACE"
    )
    assert shape_of(query_of(first)) == shape_of(query_of(first + more))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            GROUPED.format("COUNT(*) AS C", "WINDOW TUMBLING (SIZE 1 HOUR)"),
            "steps: aggregate TUMBLING 3600000 by 3600000 ms, the query has aggregate",
        ),
        (
            GROUPED.format("COUNT(*) AS C", "").replace(
                "TABLE O", "TABLE O WITH (KAFKA_TOPIC='p')"
            ),
            "sink: p, the query has O",
        ),
    ],
)
def test_a_checkpoint_of_another_plan_is_an_error_that_names_the_difference(tmp_path, other, said):
    query = query_of(GROUPED.format("COUNT(*) AS C", ""))
    place = begun(tmp_path / "there", query_of(other))
    shutil.copytree(place, tmp_path / "queries" / query.id)
    desk, status = gone_on(tmp_path, query)
    assert status.state is State.ERROR
    assert desk.runtime.started == []
    assert f"the checkpoint of query {query.id} belongs to another plan" in status.last_error
    assert said in status.last_error
    assert f"ksql.state.anew={query.id}" in status.last_error


def test_another_querys_directory_under_this_ones_name(tmp_path):
    query = query_of(GROUPED.format("COUNT(*) AS C", ""))
    place = begun(tmp_path, query)
    now = shape_of(query)
    plan_fingerprint.write(place, now | {"id": "CTAS_P_9"})
    with pytest.raises(plan_fingerprint.OtherPlan, match="belongs to another plan") as caught:
        plan_fingerprint.adopt(query.id, place, now)
    assert f"id: CTAS_P_9, the query has {query.id}" in caught.value.detail


def test_restart_on_request_keeps_the_other_checkpoint(tmp_path):
    query = query_of(GROUPED.format("COUNT(*) AS C", ""))
    place = begun(tmp_path, query)
    plan_fingerprint.write(place, shape_of(query) | {"sink": "p"})
    desk, status = gone_on(tmp_path, query, start_over=frozenset({query.id}))
    assert status.state is State.RUNNING
    assert plan_fingerprint.read(place) == shape_of(query)
    assert [entry.reason for entry in desk.trash.entries()] == ["its query starts over"]


def test_a_checkpoint_from_before_shapes_adopts_that_of_its_query(tmp_path):
    query = query_of(GROUPED.format("COUNT(*) AS C", ""))
    place = begun(tmp_path, query)
    (place / "shape.json").unlink()
    _, status = gone_on(tmp_path, query)
    assert status.state is State.RUNNING
    assert plan_fingerprint.read(place) == shape_of(query)


def test_fingerprint_is_read_once_at_a_launch_and_written_once_per_incarnation(
    tmp_path, monkeypatch
):
    query = query_of(GROUPED.format("COUNT(*) AS C", ""))
    begun(tmp_path, query)
    calls = []
    for name in ("read", "write"):
        usual = getattr(plan_fingerprint, name)

        def counted(*given, name=name, usual=usual):
            calls.append(name)
            return usual(*given)

        monkeypatch.setattr(plan_fingerprint, name, counted)
    gone_on(tmp_path, query)
    assert calls == ["read"]


@pytest.mark.parametrize("text", ["", "[]", '{"version": 1}', '{"version": 1, "shape": []}'])
def test_a_shape_that_cannot_be_read(tmp_path, text):
    (tmp_path / "shape.json").write_text(text)
    with pytest.raises(checkpoint.CheckpointDamaged):
        plan_fingerprint.read(tmp_path)


def writing_to(query, topic):
    plan = codec.loads(query.plan)
    return replace(query, plan=codec.dumps(replace(plan, sink=replace(plan.sink, topic=topic))))


def test_a_version_may_write_to_its_hidden_topic_before_and_after_it_is_the_query(tmp_path):
    final = replace(query_of(GROUPED.format("COUNT(*) AS C", "")), version_number=7)
    candidate = writing_to(final, final.version.results_topic("default_"))
    place = begun(tmp_path, candidate)
    assert "sink" not in plan_fingerprint.read(place)
    for query in (final, candidate, final):
        _, status = gone_on(tmp_path, query)
        assert status.state is State.RUNNING
        assert plan_fingerprint.read(place)["sink"] == "O"
    _, status = gone_on(tmp_path, writing_to(final, "p"))
    assert "sink: O, the query has p" in str(status.last_error)


def test_a_query_that_starts_over_after_a_cut_over_has_nothing_to_compare(tmp_path):
    query = query_of(GROUPED.format("COUNT(*) AS C", ""))
    query = replace(query, version_number=7, cut_over=CutOver(9, 0))
    desk, status = gone_on(tmp_path, query, start_over=frozenset({query.id}))
    assert status.state is State.RUNNING
    mark = cut_over_mark.read(desk.runner.checkpoint(query.version))
    assert mark == cut_over_mark.CutOverMark(number=9, done=True)
