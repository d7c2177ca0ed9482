from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from ksql.core.process.jars import sha256
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.spark.query.compile import task_environment
from ksql.spark.query.spec import Link, QuerySpec
from ksql.spark.session.rangesjar import DIGEST, SOURCE_CODE
from ksql.spark.session.source import SOURCE, SOURCE_JAR, kafka_source


class Session:
    """Notes the options of a source."""

    def __init__(self):
        self.properties = {}
        self.readStream = self

    def format(self, name):
        self.form = name
        return self

    def options(self, **properties):
        self.properties = properties
        return self

    def load(self):
        return self

    def selectExpr(self, *_):  # noqa: N802 - Spark's name
        return self


def spec_with(consumer, **more):
    return QuerySpec(
        version=QueryVersion(QueryId("Q")),
        plan_json="{}",
        topics={"t": "earliest"},
        checkpoint=Path("checkpoint"),
        consumer={"bootstrap.servers": "b:1", **consumer},
        producer={},
        **more,
    )


LEVELS = pytest.mark.parametrize(
    ("exactly_once", "overrides", "level"),
    [
        (False, {}, "read_committed"),
        (True, {}, "read_committed"),
        (False, {"isolation.level": "read_uncommitted"}, "read_uncommitted"),
        (True, {"isolation.level": "read_uncommitted"}, "read_committed"),
    ],
)


@LEVELS
def test_aborted_records_are_not_read_unless_that_is_requested(exactly_once, overrides, level):
    spec = spec_with(overrides, exactly_once=exactly_once)
    session = Session()
    kafka_source(session, spec, lambda _topic: 1)
    assert session.properties["kafka.isolation.level"] == level


@LEVELS
def test_neither_do_the_workers(exactly_once, overrides, level):
    committed = {"isolation.level": "read_committed"}
    spec = spec_with({}, exactly_once=exactly_once, reader=committed | overrides)
    assert dict(task_environment(spec).reader or ())["isolation.level"] == level


@pytest.mark.parametrize(("reader", "ranges"), [(None, None), ({"a": "b"}, "true")])
def test_the_records_are_read_or_the_ranges_in_which_they_are_named(reader, ranges):
    session = Session()
    kafka_source(session, spec_with({}, reader=reader), lambda _topic: 1)
    assert session.form == SOURCE
    assert session.properties.get("rangesOnly") == ranges
    assert session.properties["maxOffsetsPerTrigger"] == "500000"
    assert task_environment(spec_with({}, reader=reader)).reader == (reader and (("a", "b"),))


@pytest.mark.parametrize("required", [True, False])
def test_whether_all_records_must_be_there_travels_with_the_query(required):
    assert task_environment(spec_with({}, fail_on_data_loss=required)).all_records is required


@pytest.mark.parametrize("stages", [0, 1])
def test_a_query_that_is_behind_takes_its_records_by_time(stages):
    session = Session()
    kafka_source(session, spec_with({}, stages=stages), lambda _topic: 1)
    assert session.properties.get("topicOrder") == "t"


@pytest.mark.parametrize(("until", "waits"), [(None, True), ({"t": {0: 5}}, False)])
def test_a_query_with_an_end_waits_for_no_other_one(until, waits):
    """It would wait for ever for the records that another one writes after the end."""
    links = {"writer": Link("t", (), begun=1, exactly_once=True)}
    session = Session()
    kafka_source(session, spec_with({}, chain=links, until=until), lambda _topic: 1)
    assert ("queryName" in session.properties) is waits
    assert session.properties["markedTopics"] == "t"


def test_the_jar_is_made_of_the_sources_next_to_it():
    with zipfile.ZipFile(SOURCE_JAR) as jar:
        for code in SOURCE_CODE:
            assert jar.read(DIGEST.format(code.name)).decode().strip() == sha256(code)
            assert f"ksql/{code.stem}.class" in jar.namelist()
