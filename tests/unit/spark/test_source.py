from __future__ import annotations

from pathlib import Path

import pytest

from ksql.spark.source import kafka_source
from ksql.spark.spec import QuerySpec


class Session:
    """Notes the options of a source."""

    def __init__(self):
        self.told = {}
        self.readStream = self

    def format(self, _name):
        return self

    def options(self, **told):
        self.told = told
        return self

    def load(self):
        return self

    def selectExpr(self, *_):  # noqa: N802 - Spark's name
        return self


@pytest.mark.parametrize(
    ("exactly_once", "asked", "level"),
    [
        (False, {}, "read_committed"),
        (True, {}, "read_committed"),
        (False, {"isolation.level": "read_uncommitted"}, "read_uncommitted"),
        (True, {"isolation.level": "read_uncommitted"}, "read_committed"),
    ],
)
def test_aborted_records_are_not_read_unless_that_is_asked_for(exactly_once, asked, level):
    spec = QuerySpec(
        query_id="Q",
        plan_json="{}",
        topics={"t": "earliest"},
        checkpoint=Path("checkpoint"),
        consumer={"bootstrap.servers": "b:1", **asked},
        producer={},
        exactly_once=exactly_once,
    )
    session = Session()
    kafka_source(session, spec, lambda _topic: 1)
    assert session.told["kafka.isolation.level"] == level
