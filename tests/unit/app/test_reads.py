"""What is refused before a query of a client runs."""

from __future__ import annotations

import pytest

from ksql.app.reads import Reads
from ksql.statements.answers import RequestFailed
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"


def refused(text, **properties):
    world = World(S)
    reads = Reads(world.engine, None, None, None, lambda: 1000)
    with pytest.raises(RequestFailed) as caught:
        reads.open(text, world.services, world.settings, properties, {})
    return caught.value


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"no.such": "1"}, "Not recognizable"),
        ({"auto.offset.reset": "x"}, "auto.offset.reset"),
        ({"ksql.service.id": "mine"}, "server's configuration"),
    ],
)
def test_properties_that_cannot_be_set_are_no_fault_of_the_statement(properties, says):
    failed = refused("SELECT * FROM S EMIT CHANGES;", **properties)
    assert says in failed.error.text()
    assert (failed.error.code, failed.statement_text) == (40000, "")


@pytest.mark.parametrize(
    ("text", "says", "quoted"),
    [
        ("", "Expected exactly one KSQL statement; found 0 instead", ""),
        ("SHOW STREAMS; SHOW STREAMS;", "found 2 instead", "SHOW STREAMS; SHOW STREAMS;"),
        ("SHOW STREAMS;", "not a query", "SHOW STREAMS;"),
        ("SELECT * FROM T EMIT CHANGES;", "T", "SELECT * FROM T EMIT CHANGES;"),
        ("SELECT * FROM S EMIT", "", "SELECT * FROM S EMIT"),
        (
            "SELECT * FROM S ORDER BY A DESC EMIT CHANGES;",
            "line 1:26: ORDER BY is only supported in pull queries.",
            "SELECT * FROM S ORDER BY A DESC EMIT CHANGES;",
        ),
        (
            "SELECT * FROM S EMIT CHANGES LIMIT 1 OFFSET 1;",
            "OFFSET is only supported in pull queries.",
            "SELECT * FROM S EMIT CHANGES LIMIT 1 OFFSET 1;",
        ),
    ],
)
def test_statements_that_cannot_be_answered(text, says, quoted):
    failed = refused(text)
    assert says in failed.error.text()
    assert (failed.error.code, failed.statement_text) == (40001, quoted)
