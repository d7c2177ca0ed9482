from __future__ import annotations

import pytest

from qtt.load import load
from qtt.local import LocalDrivers
from qtt.run import run

SOURCE = "CREATE STREAM s (k INT KEY, v INT, w STRING) WITH (kafka_topic='s', value_format='JSON');"


@pytest.fixture
def result(tmp_path):
    """Runs one block in memory."""

    def result_of(*lines, expect=()):
        path = tmp_path / "f.sql"
        path.write_text("\n".join(["--@test: t", *expect, SOURCE, *lines]))
        (case,) = load(path)
        return run(case, LocalDrivers())

    return result_of


def _error(kind, message):
    return [f"--@expected.error: {kind}", f"--@expected.message: {message}"]


def test_inserts_pass_through_the_queries_at_once(result):
    outcome = result(
        "CREATE STREAM t AS SELECT k, v FROM s;",
        "INSERT INTO s (rowtime, k, v) VALUES (5, 1, 10);",
        "CREATE OR REPLACE STREAM t AS SELECT k, v, w FROM s;",
        "INSERT INTO s (k, v, w) VALUES (2, 20, 'x');",
        "ASSERT VALUES t (rowtime, k, v) VALUES (5, 1, 10);",
        "ASSERT VALUES t (k, v, w) VALUES (2, 20, 'x');",
    )
    assert (outcome.status, outcome.reason) == ("passed", "")


@pytest.mark.parametrize(
    ("assertion", "text"),
    [
        ("ASSERT VALUES s (v) VALUES (2);", "V: 2 expected, 1 found"),
        ("ASSERT VALUES s (rowtime) VALUES (9);", "ROWTIME: 9 expected"),
        ("ASSERT VALUES s (nope) VALUES (9);", "Column NOPE does not exist"),
        ("ASSERT VALUES nope (v) VALUES (9);", "NOPE does not exist"),
        ("ASSERT VALUES s (k, v) VALUES (9);", "number columns and values to match: [K, V], [9]"),
        ("ASSERT NULL VALUES s (k) KEY (1);", "not a tombstone"),
        ("ASSERT NULL VALUES s (k) KEY (1, 2);", "to match: [K], [1, 2]"),
        ("ASSERT VALUES s (v) VALUES (1); ASSERT VALUES s (v) VALUES (1);", "all records"),
    ],
)
def test_assertions_on_records_fail(result, assertion, text):
    outcome = result("INSERT INTO s (rowtime, k, v) VALUES (0, 7, 1);", assertion)
    assert outcome.status == "failed"
    assert text in outcome.reason
    assert "defect" not in outcome.reason


def test_without_columns_only_the_record_is_asserted(result):
    outcome = result("INSERT INTO s (k) VALUES (7);", "ASSERT VALUES s VALUES (1, 2, 'x');")
    assert (outcome.status, outcome.reason) == ("passed", "")


def test_an_assertion_of_what_is_no_source_is_an_error_of_its_own(result):
    expect = _error("io.confluent.ksql.util.KsqlException", "Source X does not exist")
    assert result("ASSERT VALUES x (v) VALUES (1);", expect=expect).status == "passed"


def test_a_key_that_is_not_there(result):
    outcome = result(
        "CREATE TABLE t AS SELECT k, COUNT(*) n FROM s GROUP BY k HAVING COUNT(*) < 2;",
        "INSERT INTO s (k) VALUES (7); INSERT INTO s (k) VALUES (7);",
        "ASSERT VALUES t (n) VALUES (1);",
        "ASSERT NULL VALUES t (n) KEY (7);",
    )
    assert outcome.reason == "N is no key column of T"


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("STREAM s (k INT KEY, v INT) WITH (kafka_topic='s', value_format='JSON')", "schema"),
        (
            "TABLE s (k INT PRIMARY KEY, v INT) WITH (kafka_topic='s', value_format='JSON')",
            "type",
        ),
        (
            "STREAM s (k INT KEY, v INT, w STRING) WITH (kafka_topic='z', value_format='JSON')",
            "kafka topic",
        ),
        (
            "STREAM s (k INT KEY, v INT, w STRING) WITH (kafka_topic='s', value_format='KAFKA')",
            "value format",
        ),
        (
            "STREAM s (k INT KEY, v INT, w STRING) WITH (kafka_topic='s', format='JSON')",
            "key format",
        ),
        (
            "STREAM s (k INT KEY, v INT, w STRING) "
            "WITH (kafka_topic='s', value_format='JSON', value_schema_id=1)",
            "value format properties",
        ),
    ],
)
def test_assertions_on_sources_fail(result, declared, text):
    outcome = result(f"ASSERT {declared};")
    assert outcome.status == "failed"
    assert f"Expected {text} does not match actual" in outcome.reason


def test_assertions_on_sources_hold(result):
    outcome = result(
        "ASSERT STREAM s (k INT KEY, v INT, w STRING) WITH (kafka_topic='s', value_format='JSON');"
    )
    assert (outcome.status, outcome.reason) == ("passed", "")


def test_an_announced_error_ends_the_block(result):
    expect = _error("io.confluent.ksql.util.KsqlException", "does not exist")
    assert (
        result("DROP STREAM nope;", "ASSERT VALUES s (v) VALUES (1);", expect=expect).status
        == "passed"
    )
    assert "nothing was thrown" in result(expect=expect).reason


def test_an_announced_assertion_must_be_one(result):
    expect = _error("java.lang.AssertionError", "all records")
    assert result("ASSERT VALUES s (v) VALUES (1);", expect=expect).status == "passed"
    assert result("DROP STREAM nope;", expect=expect).status == "failed"


def test_scripts_are_found_next_to_the_file_or_above(result, tmp_path):
    (tmp_path / "more.sql").write_text("CREATE STREAM t AS SELECT k, v FROM s;")
    outcome = result(
        "RUN SCRIPT '/more.sql';",
        "INSERT INTO s (k, v) VALUES (1, 2);",
        "ASSERT VALUES t (v) VALUES (2);",
    )
    assert (outcome.status, outcome.reason) == ("passed", "")
    assert "there is no script" in result("RUN SCRIPT '/nowhere.sql';").reason
