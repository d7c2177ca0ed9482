"""How answers of REST cases are compared."""

from __future__ import annotations

import base64

import pytest

from qtt import tokens
from qtt.model import Mismatch, QueryTestCase, RestPart, Statement, Step, Unsupported
from qtt.rest import Refused, check_answer, check_refusal, requests

HEADER = '{"header": {"schema": "`A` INTEGER", "queryId": "q_1"}}'
ROWS = f'{{"query": [{HEADER}, {{"row": {{"columns": [1]}}}}, {{"row": {{"columns": [2.50]}}}}]}}'


def answer(want: str, got: str) -> None:
    check_answer("answer 0", tokens.parse(want), tokens.parse(got))


@pytest.mark.parametrize(
    "want",
    [
        ROWS,
        ROWS.replace('"queryId": "q_1"', '"queryId|starts_with": "q_"'),
        ROWS.replace(', "queryId": "q_1"', ""),
        ROWS.replace("[1]", "[x]").replace("[2.50]", "[1]").replace("[x]", "[2.50]"),
    ],
)
def test_only_what_is_expected_counts_and_rows_have_no_order(want):
    answer(want, ROWS)


@pytest.mark.parametrize(
    "want",
    [
        ROWS.replace("[1]", "[3]"),
        ROWS.replace("[1]", "[1, 1]"),
        ROWS.replace("2.50", "2.5"),
        ROWS.replace("[2.50]", "[1]"),
        ROWS.replace("`A`", "`B`"),
        ROWS.replace('"queryId": "q_1"', '"queryId|starts_with": "r"'),
        ROWS.replace(HEADER, HEADER + ", " + HEADER),
        '{"admin": {"@type": "currentStatus"}}',
    ],
)
def test_answers_that_differ(want):
    with pytest.raises(Mismatch):
        answer(want, ROWS)


def test_rows_in_the_order_of_the_case():
    swapped = ROWS.replace("[1]", "[x]").replace("[2.50]", "[1]").replace("[x]", "[2.50]")
    check_answer("", tokens.parse(ROWS), tokens.parse(ROWS), ordered=True)
    with pytest.raises(Mismatch):
        check_answer("", tokens.parse(swapped), tokens.parse(ROWS), ordered=True)


def test_entities_are_compared_by_their_expected_members():
    got = '{"admin": {"@type": "streams", "streams": [{"name": "A", "topic": "a"}]}}'
    answer('{"admin": {"@type": "streams", "streams": [{"name": "A"}]}}', got)
    with pytest.raises(Mismatch, match="streams"):
        answer('{"admin": {"@type": "tables"}}', got)


def test_queries_are_requests_of_their_own_however_they_are_written():
    text = "CREATE STREAM s (a INT) WITH (x='SELECT'); DROP STREAM s;"
    texts = (text, "select\n1;", "LIST TYPES;")
    case = QueryTestCase(id="n", steps=(Step(tuple(map(Statement, texts)), ()),), outputs=())
    admin, queries = requests(case)
    assert admin == "CREATE STREAM s (a INT) WITH (x='SELECT');\nDROP STREAM s;"
    assert [query.text for query in queries] == ["select\n1;", "LIST TYPES;"]


# --- answers in protobuf

PROTO_SCHEMA = """syntax = "proto3";

message ConnectDefault1 {
  int32 ID = 1;
  repeated ConnectDefault2Entry M = 2;
  repeated string TAGS = 3;

  message ConnectDefault2Entry {
    string key = 1;
    int32 value = 2;
  }
}
"""
PROTO_HEADER = {"header": {"protoSchema": PROTO_SCHEMA}}
# ID 7, the pairs b -> 2 and a -> 0, the tags x and y
PROTO_ROW = bytes.fromhex("0807 1205 0a0162 1002 1205 0a0161 1000 1a0178 1a0179")
PROTO_TEXT = 'ID: 7 M { key: "a" } M { key: "b" value: 2 } TAGS: "x" TAGS: "y"'


def proto_answer(*texts: str, got: bytes = PROTO_ROW) -> None:
    row = {"row": {"protobufBytes": base64.b64encode(got).decode()}}
    end = {"finalMessage": "Query Completed"}
    want = [PROTO_HEADER, *({"row": text} for text in texts), end]
    rows = [PROTO_HEADER, *(row for _ in texts), end]
    check_answer("answer 0", {"queryProto": want}, {"queryProto": rows})


def test_messages_are_compared_by_their_texts():
    proto_answer(PROTO_TEXT)
    proto_answer(PROTO_TEXT, PROTO_TEXT)
    proto_answer("", got=b"")


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (PROTO_TEXT.replace("7", "8"), PROTO_ROW),
        (PROTO_TEXT.replace("ID: 7", ""), PROTO_ROW),
        (PROTO_TEXT.replace('"x"', '"z"'), PROTO_ROW),
        (PROTO_TEXT.replace('TAGS: "x" TAGS: "y"', 'TAGS: "y" TAGS: "x"'), PROTO_ROW),
        (PROTO_TEXT.replace("value: 2", ""), PROTO_ROW),
        (PROTO_TEXT.replace("ID", "OTHER"), PROTO_ROW),
        (PROTO_TEXT, b""),
        (PROTO_TEXT, b"\x0a"),
    ],
)
def test_messages_that_differ(text, row):
    with pytest.raises(Mismatch):
        proto_answer(text, got=row)


def test_an_answer_in_protobuf_has_a_schema():
    with pytest.raises(Mismatch, match="a header with a schema"):
        check_answer("", {"queryProto": []}, {"queryProto": []})
    want = {"header": {"protoSchema": PROTO_SCHEMA.replace("ID", "KEY")}}
    with pytest.raises(Mismatch, match="protoSchema"):
        check_answer("", {"queryProto": [want]}, {"queryProto": [PROTO_HEADER]})
    with pytest.raises(Mismatch, match="queryProto expected"):
        check_answer("", {"queryProto": [PROTO_HEADER]}, {"query": [PROTO_HEADER]})


# --- refusals


def refusal(**error: str) -> RestPart:
    return RestPart(error=error)


BODY = {"@type": "statement_error", "message": "no such thing", "statementText": "SELECT 1;"}


@pytest.mark.parametrize(
    "part",
    [
        refusal(message="such"),
        refusal(message="such", status="400"),
        refusal(message="such", type="x.KsqlStatementErrorMessage"),
    ],
)
def test_announced_errors(part):
    check_refusal(part, Refused(400, BODY, "SELECT 1;"))


@pytest.mark.parametrize(
    ("part", "body"),
    [
        (RestPart(), BODY),
        (refusal(message="other"), BODY),
        (refusal(message="such", status="404"), BODY),
        (
            refusal(message="such", type="x.KsqlStatementErrorMessage"),
            {**BODY, "@type": "generic_error"},
        ),
    ],
)
def test_errors_that_were_not_announced(part, body):
    with pytest.raises(Mismatch):
        check_refusal(part, Refused(400, body, "SELECT 1;"))


def test_refusal_of_an_unsupported_join_is_unsupported():
    body = {**BODY, "message": "a join is not supported yet"}
    with pytest.raises(Unsupported):
        check_refusal(RestPart(), Refused(400, body, "SELECT 1;"))
