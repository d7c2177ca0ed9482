from __future__ import annotations

import json

import pytest

from qtt.load import load
from qtt.model import ExpectedException, RestPart, SchemaDef, TopicDef, WindowBounds


@pytest.fixture
def cases(tmp_path):
    """Loads a file made of the given tests."""

    def cases_of(*tests, name="sample.json"):
        path = tmp_path / name
        path.write_text(json.dumps({"tests": list(tests)}))
        return list(load(path))

    return cases_of


def test_a_plain_list_is_one_step(cases):
    (case,) = cases({"name": "n", "statements": ["A;", "B;"], "inputs": [{"topic": "t"}]})
    assert case.id == "sample - n"
    (step,) = case.steps
    assert [s.sql for s in step.statements] == ["A;", "B;"]
    assert len(step.inputs) == 1


def test_lists_of_lists_are_steps_that_take_turns(cases):
    (case,) = cases(
        {
            "name": "n",
            "statements": [["A;"], ["B;"], ["C;"]],
            "inputs": [[{"topic": "t", "value": 1}, {"topic": "t"}], [{"topic": "u"}]],
        }
    )
    assert [[s.sql for s in step.statements] for step in case.steps] == [["A;"], ["B;"], ["C;"]]
    assert [[r.topic for r in step.inputs] for step in case.steps] == [["t", "t"], ["u"], []]


def test_single_items_are_steps_where_there_are_steps(cases):
    records = [{"topic": "t"}, [{"topic": "u"}, {"topic": "v"}], {"topic": "w"}]
    (case,) = cases({"name": "n", "statements": [["A;", "B;"], "C;"], "inputs": records})
    assert [[s.sql for s in step.statements] for step in case.steps] == [["A;", "B;"], ["C;"], []]
    assert [[r.topic for r in step.inputs] for step in case.steps] == [["t"], ["u", "v"], ["w"]]
    (case,) = cases({"name": "n", "statements": [["A;"], ["B;"]], "inputs": [records[0]] * 2})
    assert [len(step.inputs) for step in case.steps] == [1, 1]
    (case,) = cases({"name": "n", "statements": ["A;", "B;"], "inputs": [records[0]] * 2})
    assert [len(step.inputs) for step in case.steps] == [2]


def test_more_steps_of_inputs_than_of_statements(cases):
    (case,) = cases(
        {"name": "n", "statements": ["A;"], "inputs": [[{"topic": "t"}], [{"topic": "t"}]]}
    )
    assert [len(step.statements) for step in case.steps] == [1, 0]


def test_a_statement_may_be_marked_as_refused(cases):
    (case,) = cases({"name": "n", "statements": [["A;", {"sql": "B;", "refused": "GROUP BY"}]]})
    assert [(s.sql, s.refused) for s in case.steps[0].statements] == [
        ("A;", None),
        ("B;", "GROUP BY"),
    ]


def test_formats_times_configs(cases):
    cases_ = cases(
        {
            "name": "n",
            "format": ["JSON", "DELIMITED"],
            "config": ["true", "false"],
            "properties": {"ksql.some": "{config}", "ksql.other": True},
            "statements": ["VALUE_FORMAT='{FORMAT}';"],
        }
    )
    assert [case.id for case in cases_] == [
        "sample - n - JSON - ksql.some=true",
        "sample - n - JSON - ksql.some=false",
        "sample - n - DELIMITED - ksql.some=true",
        "sample - n - DELIMITED - ksql.some=false",
    ]
    assert cases_[3].steps[0].statements[0].sql == "VALUE_FORMAT='DELIMITED';"
    assert cases_[3].properties == {"ksql.some": "false", "ksql.other": "true"}


def test_records_and_their_defaults(cases):
    (case,) = cases(
        {
            "name": "n",
            "statements": ["A;"],
            "inputs": [{"topic": "t"}],
            "outputs": [
                {
                    "topic": "u",
                    "key": "k",
                    "value": 1.0,
                    "window": {"start": 1, "end": 2, "type": "SESSION"},
                    "headers": [{"KEY": "h", "VALUE": "YQ=="}, {"KEY": "h", "VALUE": None}],
                }
            ],
        }
    )
    (given,) = case.steps[0].inputs
    assert (given.key, given.value, given.timestamp, given.headers) == (None, None, 0, ())
    (record,) = case.outputs
    assert record.timestamp is None
    assert record.value == "1.0"
    assert record.window == WindowBounds(1, 2, "session")
    assert record.headers == (("h", b"a"), ("h", None))


def test_settings_next_to_the_statements(cases):
    (case,) = cases(
        {
            "name": "n",
            "statements": ["A;"],
            "properties": {"use.exact.numeric.comparison": False},
            "topics": [
                {"name": "t", "partitions": 3},
                {
                    "name": "u",
                    "keySchema": "int",
                    "valueFormat": "PROTOBUF",
                    "valueSchema": "message M {}",
                    "valueSchemaId": 7,
                    "valueSchemaReferences": [{"name": "n", "format": "JSON_SR", "schema": {}}],
                },
            ],
            "expectedException": {"type": "io.x.KsqlException", "message": "why"},
        }
    )
    assert not case.exact_numbers
    assert case.properties == {}
    assert case.topics == (
        TopicDef(name="t", partitions=3),
        TopicDef(
            name="u",
            key=SchemaDef("AVRO", '"int"'),
            value=SchemaDef("PROTOBUF", "message M {}", 7, (("n", "JSON", "{}"),)),
        ),
    )
    assert case.expected == ExpectedException("KsqlException", "why")


def test_disabled_cases_are_left_out(cases):
    assert cases({"name": "n", "enabled": False, "statements": ["A;"]}) == []


def test_a_case_for_a_server_is_known_as_such(cases):
    cases_ = cases(
        {
            "name": "n",
            "format": ["JSON", "AVRO"],
            "statements": ["A '{FORMAT}';"],
            "properties": {"p": 1},
            "inputConditions": {"waitForActivePushQuery": True},
            "outputConditions": {"verifyOrder": True},
            "responses": [{"admin": {}}],
        }
    )
    assert [case.id for case in cases_] == ["sample - n - JSON", "sample - n - AVRO"]
    part = RestPart(responses=({"admin": {}},), properties={"p": 1}, waits=True, ordered=True)
    assert [case.rest for case in cases_] == [part, part]
    assert cases_[1].steps[0].statements[0].sql == "A 'AVRO';"


SQL = """-- a comment
--@test: first
CREATE STREAM a;
-- more
ASSERT VALUES a;
----------
--@test: empty
--@test: second
--@expected.error: io.confluent.Some$KsqlException
--@EXPECTED.MESSAGE: not that
DROP STREAM a;
"""


def test_blocks_of_an_sql_file(tmp_path):
    path = tmp_path / "file.sql"
    path.write_text(SQL)
    first, empty, second = load(path)
    assert first.id == "file.sql - first"
    assert first.sql_block == "CREATE STREAM a;\nASSERT VALUES a;"
    assert first.expected is None
    assert (empty.id, empty.sql_block) == ("file.sql - empty", "")
    assert second.expected is not None
    assert second.expected.message == "not that"


def test_a_folder_is_read_in_order_and_names_sql_files_by_their_path(tmp_path):
    (tmp_path / "b.json").write_text('{"tests": [{"name": "j", "statements": ["A;"]}]}')
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "x.sql").write_text("--@test: one\nA;")
    (tmp_path / "test-script.sql").write_text("--@test: no test\nA;")
    (tmp_path / "notes.txt").write_text("not read")
    assert [case.id for case in load(tmp_path)] == ["b - j", "deep/x.sql - one"]


def test_the_corpus_of_sql_files_names_its_files_from_its_own_root(tmp_path):
    folder = tmp_path / "sql-tests" / "deep"
    folder.mkdir(parents=True)
    (folder / "x.sql").write_text("--@test: one\nA;")
    for path in (tmp_path, tmp_path / "sql-tests", folder, folder / "x.sql"):
        assert [case.id for case in load(path)] == ["deep/x.sql - one"]
