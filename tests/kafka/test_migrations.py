"""``ksql migrations`` against a service: a project from its beginning to its end."""

from __future__ import annotations

import json

import pytest

from tests.kafka.records import unique
from tests.unit.cli.migrations.tool import Tool

FIRST = """\
CREATE STREAM ${{rides}} (bike STRING KEY, metres INT)
  WITH (KAFKA_TOPIC='{rides}', VALUE_FORMAT='JSON', PARTITIONS=1);
INSERT INTO {rides} VALUES ('b7', 1200);
"""
SECOND = """\
-- allow: {allowed}
SET 'auto.offset.reset' = 'earliest';
CREATE TABLE {bikes} AS SELECT bike, COUNT(*) AS rides FROM {rides} GROUP BY bike;
{third}
CREATE OR REPLACE TABLE {bikes} AS
  SELECT bike, COUNT(*) AS rides, MAX(metres) AS farthest FROM {rides} GROUP BY bike;
"""


@pytest.mark.proof  # a minute; tests/golden/test_migrations.py walks through it in memory
def test_a_project_from_its_beginning_to_its_end(http, tmp_path, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    rides, bikes = unique("rides").upper(), unique("bikes").upper()
    events, versions = unique("events").upper(), unique("versions").upper()
    tool = Tool(tmp_path, http.url)
    with tool.config.open("a") as config:
        config.write(f"ksql.migrations.stream.name={events}\n")
        config.write(f"ksql.migrations.table.name={versions}\n")
    tool.run("initialize-metadata")
    second = {"rides": rides, "bikes": bikes, "allowed": "configuration"}
    second["third"] = f"INSERT INTO {rides} VALUES ('b7', 'far');"
    tool.file(1, "rides", FIRST.format(rides=rides))
    tool.file(2, "bikes", SECOND.format_map(second))

    assert "statement 3: line 4:" in tool.fails("plan", "-d", f"rides={rides}")
    assert rides not in {source["name"] for source in http.one("SHOW STREAMS;")["streams"]}

    second["third"] = "ASSERT TOPIC nowhere TIMEOUT 0 SECONDS;"
    tool.file(2, "bikes", SECOND.format_map(second))
    assert "Topic nowhere does not exist" in tool.fails("apply", "--all", "-d", f"rides={rides}")
    assert tool.states() == ["MIGRATED", "ERROR"]

    second["third"] = f"INSERT INTO {rides} VALUES ('b7', 640);"
    tool.file(2, "bikes", SECOND.format_map(second))
    assert "of class schema evolution, which the file does not allow" in tool.fails("plan")
    assert "which the file does not allow" in tool.fails("apply", "--next")
    second["allowed"] = "schema evolution"
    tool.file(2, "bikes", SECOND.format_map(second))
    assert "schema evolution   in place" in tool.run("plan")
    assert "4 of 4: Upgrade of class schema evolution" in tool.run("apply", "--next")
    tool.run("validate")
    assert tool.states() == ["MIGRATED", "MIGRATED"]
    [current] = http.rows(f"SELECT version, state FROM {versions} WHERE version_key='CURRENT';")
    assert current == ["2", "MIGRATED"]

    tool.run("destroy-metadata")
    sources = json.dumps(http.ksql("SHOW STREAMS; SHOW TABLES; SHOW TOPICS;"))
    assert events not in sources
    assert versions not in sources
    assert rides in sources
