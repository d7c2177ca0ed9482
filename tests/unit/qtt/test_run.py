from __future__ import annotations

import json

import pytest

from ksql.core.errors import KsqlError, NotSupportedYet
from qtt.load import load
from qtt.local import LocalDriver, LocalDrivers
from qtt.model import ExpectedException, Mismatch
from qtt.run import check_exception, run

SOURCE = "CREATE STREAM a (k INT KEY, v INT) WITH (KAFKA_TOPIC='a', VALUE_FORMAT='JSON');"
QUERY = "CREATE STREAM b AS SELECT k, v FROM a;"
RETYPED = "CREATE OR REPLACE STREAM b AS SELECT k, CAST(v AS STRING) AS v FROM a;"


@pytest.fixture
def result(tmp_path):
    """Runs one test in memory."""

    def result_of(**test):
        path = tmp_path / "f.json"
        path.write_text(json.dumps({"tests": [{"name": "n", **test}]}))
        (case,) = load(path)
        return run(case, LocalDrivers())

    return result_of


def _row(n):
    return {"topic": "a", "key": n, "value": {"v": n}}


def test_statements_and_records_take_turns(result):
    outcome = result(
        statements=[
            [SOURCE, QUERY],
            ["CREATE OR REPLACE STREAM b AS SELECT k, v, v * 2 AS w FROM a;"],
        ],
        inputs=[[_row(1)], [_row(2)]],
        outputs=[
            {"topic": "B", "key": 1, "value": {"V": 1}},
            {"topic": "B", "key": 2, "value": {"V": 2, "W": 4}},
        ],
    )
    assert (outcome.status, outcome.reason) == ("passed", "")


def test_a_refused_statement_leaves_the_query(result):
    outcome = result(
        statements=[[SOURCE, QUERY], [{"sql": RETYPED, "refused": "was INTEGER, is STRING"}]],
        inputs=[[_row(1)], [_row(2)]],
        outputs=[{"topic": "B", "key": n, "value": {"V": n}} for n in (1, 2)],
    )
    assert (outcome.status, outcome.reason) == ("passed", "")


def test_a_statement_can_be_refused_first_and_accepted_later(result):
    outcome = result(
        statements=[[{"sql": QUERY, "refused": "A does not exist"}, SOURCE, QUERY]],
        inputs=[[_row(1)]],
        outputs=[{"topic": "B", "key": 1, "value": {"V": 1}}],
    )
    assert (outcome.status, outcome.reason) == ("passed", "")


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        ({"sql": RETYPED, "refused": "the moon"}, "refused, but without 'the moon'"),
        ({"sql": "CREATE STREAM c AS SELECT k, v FROM a;", "refused": "x"}, "was to be refused"),
    ],
)
def test_a_refusal_must_come_and_say_why(result, refused, text):
    outcome = result(statements=[[SOURCE, QUERY, refused]], inputs=[[_row(1)]])
    assert outcome.status == "failed"
    assert text in outcome.reason


def test_a_statement_that_is_not_supported_yet_is_not_refused(result, monkeypatch):
    def execute(*_):
        raise NotSupportedYet("this")

    monkeypatch.setattr(LocalDriver, "execute", execute)
    outcome = result(statements=[[{"sql": SOURCE, "refused": "this"}]])
    assert (outcome.status, outcome.reason) == ("unsupported", "this is not supported yet")


def test_a_refused_statement_must_not_change_anything(result, monkeypatch):
    execute = LocalDriver.execute

    def refuse_too_late(self, statement, text, settings):
        execute(self, statement, text, settings)
        raise KsqlError("too late")

    monkeypatch.setattr(LocalDriver, "execute", refuse_too_late)
    outcome = result(statements=[[{"sql": SOURCE, "refused": "too late"}]])
    assert "refused, but the catalog has changed" in outcome.reason


def test_next_to_a_refused_statement_texts_are_whole_statements(result):
    outcome = result(statements=[[{"sql": QUERY, "refused": "x"}, "SHOW", "STREAMS;"]])
    assert "each text must be whole statements" in outcome.reason


def test_an_announced_error(result):
    bad = "CREATE STREAM b AS SELECT k, w FROM a;"
    expected = {"type": "io.KsqlException", "message": "W"}
    assert result(statements=[SOURCE, bad], expectedException=expected).status == "passed"
    outcome = result(statements=[SOURCE, QUERY], expectedException=expected)
    assert "nothing was thrown" in outcome.reason


def test_an_error_that_was_not_announced(result):
    outcome = result(statements=[SOURCE, "CREATE STREAM b AS SELECT k, w FROM a;"])
    assert outcome.status == "failed"
    assert "'W' cannot be resolved" in outcome.reason


def test_a_topic_without_source_fails(result):
    outcome = result(statements=[SOURCE, QUERY], outputs=[{"topic": "zzz"}])
    assert "no source is registered on topic zzz" in outcome.reason


TABLE = "CREATE TABLE t AS SELECT k, COUNT(*) AS n FROM a GROUP BY k;"
WINDOWS = "CREATE TABLE w AS SELECT k, COUNT(*) n FROM a WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY k;"


def _rows(*rows, end=()):
    lines = [{"row": {"columns": row}} for row in rows]
    return {"query": [{"header": {}}, *lines, *end]}


ENDED = ({"finalMessage": "Query Completed"},)
LIMITED = ({"finalMessage": "Limit Reached"},)


def test_a_case_for_a_server_is_answered_over_http(result):
    outcome = result(
        statements=[SOURCE, TABLE, "SELECT * FROM t WHERE k = 1;", "SELECT v FROM a WHERE v > 1;"],
        inputs=[_row(1), _row(2), _row(1)],
        outputs=[{"topic": "T", "key": 1, "value": {"N": 1}}],
        responses=[
            {"admin": {"@type": "currentStatus"}},
            {"admin": {"@type": "currentStatus"}},
            _rows([1, 2]),
            _rows([2], end=ENDED),
        ],
    )
    assert (outcome.status, outcome.reason) == ("passed", "")


def test_a_wrong_answer_fails_it(result):
    outcome = result(
        statements=[SOURCE, TABLE, "SELECT * FROM t WHERE k = 1;"],
        inputs=[_row(1)],
        responses=[{"admin": {}}, {"admin": {}}, _rows([1, 2])],
    )
    assert outcome.status == "failed"
    assert "no row" in outcome.reason


def test_inserted_rows_pass_through_the_queries(result):
    outcome = result(
        statements=[SOURCE, TABLE, "INSERT INTO a VALUES (1, 5);", "SELECT * FROM t;"],
        responses=[{"admin": {}}, {"admin": {}}, _rows([1, 1])],
    )
    assert (outcome.status, outcome.reason) == ("passed", "")


def test_records_can_wait_for_a_push_query(result):
    outcome = result(
        statements=[SOURCE, "SELECT v FROM a EMIT CHANGES LIMIT 2;"],
        properties={"auto.offset.reset": "latest"},
        inputs=[_row(1), _row(2)],
        inputConditions={"waitForActivePushQuery": True},
        responses=[{"admin": {}}, _rows([1], [2], end=LIMITED)],
    )
    assert (outcome.status, outcome.reason) == ("passed", "")


def test_a_windowed_table_forgets_what_its_retention_does_not_cover(result):
    hours = 3_600_000
    outcome = result(
        statements=[SOURCE, WINDOWS, "SELECT windowstart, n FROM w WHERE k = 1;"],
        inputs=[{**_row(1), "timestamp": hour * hours} for hour in (0, 1, 24)],
        responses=[{"admin": {}}, {"admin": {}}, _rows([hours, 1], [24 * hours, 1])],
    )
    assert (outcome.status, outcome.reason) == ("passed", "")


@pytest.mark.parametrize(("limit", "status"), [("-1", "passed"), ("1", "failed")])
def test_a_refusal_of_a_server(result, limit, status):
    outcome = result(
        statements=[SOURCE, f"SELECT * FROM a LIMIT {limit};"],
        expectedError={"message": "negative integers", "status": 400},
    )
    assert outcome.status == status


def test_defects_end_the_case_only(result, monkeypatch):
    monkeypatch.setattr("qtt.run._check_outputs", lambda *_: 1 // 0)
    outcome = result(statements=[SOURCE, QUERY])
    assert outcome.status == "failed"
    assert "defect: ZeroDivisionError" in outcome.reason


def test_the_exceptions_class_and_text_count():
    check_exception(ExpectedException("KsqlException", "wrong"), KsqlError("all wrong"))
    check_exception(ExpectedException(None, "wrong"), KsqlError("all wrong"))
    with pytest.raises(Mismatch, match="expected the message"):
        check_exception(ExpectedException("KsqlException", "right"), KsqlError("all wrong"))
    with pytest.raises(Mismatch, match="expected a ParseFailedException"):
        check_exception(ExpectedException("ParseFailedException", "wrong"), KsqlError("all wrong"))


KEYS = "CREATE STREAM w (k INT KEY, l INT KEY, v INT) WITH (value_format='JSON', kafka_topic='w');"


@pytest.mark.parametrize(
    "quoted",
    [
        KEYS,
        "CREATE STREAM W (K INTEGER KEY, L INTEGER KEY, V INTEGER) "
        "WITH (KAFKA_TOPIC='w', KEY_FORMAT='KAFKA', VALUE_FORMAT='JSON');",
    ],
    ids=["as written", "with its defaults"],
)
def test_an_announced_error_may_quote_the_statement(result, quoted):
    reason = (
        "schema: Persistence{columns=[`K` INTEGER KEY, `L` INTEGER KEY], features=[]}\n"
        "reason: The 'KAFKA' format only supports a single field. "
        "Got: [`K` INTEGER KEY, `L` INTEGER KEY]"
    )
    expected = {"type": "io.KsqlStatementException", "message": f"{reason}\nStatement: {quoted}"}
    outcome = result(statements=[SOURCE, KEYS], expectedException=expected)
    assert (outcome.status, outcome.reason) == ("passed", "")
    expected["message"] = f"{reason}\nStatement: CREATE TABLE"
    assert result(statements=[SOURCE, KEYS], expectedException=expected).status == "failed"


POST = {"sources": [{"name": "B", "type": "stream", "schema": "K INT KEY, V INT"}]}


def test_post_conditions(result):
    assert result(statements=[SOURCE, QUERY], post=POST).status == "passed"
    wrong = {"sources": [{**POST["sources"][0], "schema": "K INT KEY, V BIGINT"}]}
    assert "no source is like" in result(statements=[SOURCE, QUERY], post=wrong).reason
    forbidden = {"topics": {"blacklist": "^B$"}}
    assert "should not be there" in result(statements=[SOURCE, QUERY], post=forbidden).reason
