from __future__ import annotations

import pytest

from ksql.control.statements.execute import RequestFailed
from ksql.core.errors import (
    CommandTimeout,
    NotSupportedYet,
    ParseError,
    QueryOnWrongEndpoint,
    ServerError,
    Span,
    UnknownName,
)
from ksql.functions.user.watch import Overrun
from tests.unit.server.fakes import FakeService, created
from tests.unit.server.web import ask


def test_statements_answer_with_their_entities() -> None:
    service = FakeService([created()])
    body = {
        "ksql": "CREATE STREAM S ...;",
        "streamsProperties": {"auto.offset.reset": "earliest", "n": 5, "b": True, "no": None},
        "sessionVariables": {"v": "x"},
        "commandSequenceNumber": 7,
        "requestProperties": {"request.ksql.internal.request": True},
        "unknown": 1,
    }
    answer = ask(service, "POST", "/ksql", json=body)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/vnd.ksql.v1+json"
    assert answer.json() == [
        {
            "@type": "currentStatus",
            "statementText": "CREATE STREAM S ...;",
            "warnings": [],
            "commandId": "stream/`S`/create",
            "commandStatus": {"status": "SUCCESS", "message": "Stream created", "queryId": None},
            "commandSequenceNumber": 3,
        }
    ]
    properties = {"auto.offset.reset": "earliest", "n": "5", "b": "true"}
    assert service.calls == [("await", 7), ("CREATE STREAM S ...;", properties, {"v": "x"})]


def test_null_maps_of_a_request_are_empty() -> None:
    service = FakeService()
    body = {"ksql": "SHOW STREAMS;", "streamsProperties": None, "sessionVariables": None}
    assert ask(service, "POST", "/ksql", json=body).json() == []
    assert service.calls == [("SHOW STREAMS;", {}, {})]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ("{}", "lacks the field 'ksql'"),
        ('{"ksql": 5}', "field 'ksql'"),
        ('{"ksql": ";", "streamsProperties": []}', "field 'streamsProperties'"),
        ('{"ksql": ";", "streamsProperties": {"a": {}}}', "value of 'a'"),
        ('{"ksql": ";", "commandSequenceNumber": "x"}', "field 'commandSequenceNumber'"),
    ],
)
def test_a_wrong_body_is_a_bad_request(text: str, says: str) -> None:
    answer = ask(FakeService(), "POST", "/ksql", content=text)
    assert answer.status_code == 400
    assert answer.json()["@type"] == "generic_error"
    assert answer.json()["error_code"] == 40000
    assert says in answer.json()["message"]


def test_a_failed_statement_reports_what_was_done_before_it() -> None:
    span = Span(7, 10, 1, 8)
    error = UnknownName("column FOO does not exist", ("FOU",), span=span)
    service = FakeService(RequestFailed(error, "SELECT FOO;", [created()]))
    answer = ask(service, "POST", "/ksql", json={"ksql": "x;"})

    assert answer.status_code == 400
    body = answer.json()
    assert body["@type"] == "statement_error"
    assert body["error_code"] == 40001
    assert body["message"] == "line 1:8: column FOO does not exist\nDid you mean FOU?"
    assert body["statementText"] == "SELECT FOO;"
    assert [entity["@type"] for entity in body["entities"]] == ["currentStatus"]


@pytest.mark.parametrize(
    ("error", "status", "code", "kind"),
    [
        (NotSupportedYet("PRINT"), 400, 40001, "statement_error"),
        (ParseError("no", statement="x"), 400, 40001, "statement_error"),
        (RequestFailed(QueryOnWrongEndpoint("use it"), "SELECT"), 400, 40002, "statement_error"),
        (RequestFailed(ServerError("kafka is gone"), "x"), 500, 50000, "statement_error"),
        (RequestFailed(CommandTimeout("late")), 503, 50301, "generic_error"),
        (CommandTimeout("late"), 503, 50301, "generic_error"),
        (ZeroDivisionError("secret"), 500, 50000, "generic_error"),
    ],
)
def test_an_errors_class_decides_status_and_body(
    error: Exception, status: int, code: int, kind: str
) -> None:
    answer = ask(FakeService(error), "POST", "/ksql", json={"ksql": "x;"})
    assert answer.status_code == status
    assert (answer.json()["error_code"], answer.json()["@type"]) == (code, kind)
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


def test_content_is_negotiated() -> None:
    def kind(accept: str) -> tuple[int, str]:
        answer = ask(
            FakeService(), "POST", "/ksql", json={"ksql": "x;"}, headers={"accept": accept}
        )
        return answer.status_code, answer.headers["content-type"]

    v1 = (200, "application/vnd.ksql.v1+json")
    assert kind("*/*") == v1
    assert kind("application/json") == (200, "application/json")
    assert kind("application/json;q=0.5, application/vnd.ksql.v1+json") == v1
    assert kind("application/*;q=0.1, application/vnd.ksql.v1+json;q=0") == (
        200,
        "application/json",
    )
    assert kind("text/html")[0] == 406


def test_terminate_closes_the_door() -> None:
    service = FakeService()
    answer = ask(service, "POST", "/ksql/terminate", json={"deleteTopicList": ["A", "b.*"]})
    assert answer.json() == []
    assert service.calls == [("terminate", ["A", "b.*"])]
    assert ask(service, "POST", "/ksql/terminate", json={}).status_code == 200
    body = {"deleteTopicList": None}
    assert ask(service, "POST", "/ksql/terminate", json=body).status_code == 200
    assert service.calls[1:] == [("terminate", [])] * 2


def test_a_user_function_that_had_to_be_ended_fails_the_statement() -> None:
    def spin(_text):
        raise Overrun("spin", "did not return within 10 s")

    answer = ask(FakeService(answer=spin), "POST", "/ksql", json={"ksql": "INSERT .."})
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("the user function spin did not return within 10 s")
    assert answer.json()["error_code"] == 40001
