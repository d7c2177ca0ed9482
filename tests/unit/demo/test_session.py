from __future__ import annotations

import io
from collections import Counter

import pytest

from server.cli.client import FinalMessage, Row, RowsHeader, ServerFailure, WrittenNumber
from server.demo import session as sessions
from server.demo.errors import QueryInTrouble, Unexpected
from server.demo.session import UserSession
from server.demo.show import Show, make_console

UPGRADE = {"accepted": True, "classes": ["data selection"], "queryId": "CSAS_X_1"}


class FakeClient:
    """Answers from a list, in order."""

    def __init__(self, *answers):
        self._answers = list(answers)

    def execute(self, _sql, _properties):
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return [answer]


def described(read, there, state="RUNNING", errors=()):
    offsets = [{"committedOffset": read, "endOffset": there}]
    return {
        "queryDescription": {
            "state": state,
            "tasksMetadata": [{"topicOffsets": offsets}] if there else [],
            "queryErrors": [{"errorMessage": text} for text in errors],
        }
    }


def created(query_id, upgrade=None):
    status = {"message": "Created", "queryId": query_id}
    return {"commandStatus": status} | ({"upgrade": upgrade} if upgrade else {})


@pytest.fixture
def out():
    return io.StringIO()


@pytest.fixture
def session(out):
    return lambda *answers: UserSession(FakeClient(*answers), Show(make_console(out)))


def test_a_statement_and_its_answer_are_shown(session, out):
    assert session(created("CSAS_X_1")).run("CREATE ..;")["commandStatus"]["queryId"] == "CSAS_X_1"
    assert out.getvalue().split() == ["CREATE", "..;", "Created"]


def test_a_replacement_keeps_its_id(session, out):
    assert session(created("CSAS_X_1", UPGRADE)).replace("..", "CSAS_X_1") == UPGRADE
    assert "still CSAS_X_1" in out.getvalue()
    with pytest.raises(Unexpected, match="CSAS_X_1 became CSAS_X_2"):
        session(created("CSAS_X_2", UPGRADE)).replace("..", "CSAS_X_1")
    with pytest.raises(Unexpected, match="did not report"):
        session(created("CSAS_X_1")).replace("..", "CSAS_X_1")


def test_refusal_is_expected(session, out):
    session(ServerFailure(40001, "no\n- because")).refused("..")
    assert "- because" in out.getvalue()
    with pytest.raises(Unexpected, match="accepted"):
        session(created("CSAS_X_1")).refused("..")


def test_waiting_for_queries(session, monkeypatch):
    monkeypatch.setattr(sessions, "_POLL_S", 0)
    answers = [described(0, 0), described(2, 5), described(5, 5)]
    assert session(*answers).await_done(["Q"]) == {"Q": 5}
    session(*answers).await_begun("Q")


def test_a_query_in_trouble(session, monkeypatch):
    monkeypatch.setattr(sessions, "_POLL_S", 0)
    monkeypatch.setattr(sessions, "_PATIENCE_S", 0)
    with pytest.raises(QueryInTrouble) as caught:
        session(described(1, 5, "ERROR", ["disk full"])).await_done(["Q"])
    assert "disk full" in caught.value.text()
    with pytest.raises(QueryInTrouble, match="stands still at 1 of 5"):
        session(described(1, 5)).await_done(["Q"])


def test_a_query_that_recovers(session, out, monkeypatch):
    monkeypatch.setattr(sessions, "_POLL_S", 0)
    failed = described(1, 5, "ERROR", ["late worker"])
    assert session(failed, failed, described(5, 5)).await_done(["Q"]) == {"Q": 5}
    assert out.getvalue().count("late worker") == 1


def test_the_statement_of_a_query(session):
    answer = {"queries": [{"id": "A", "queryString": "a"}, {"id": "B", "queryString": "b"}]}
    assert session(answer).statement_of("B") == "b"
    assert session(answer).statement_of("C") == ""


class Streaming:
    """Answers queries from a list of answers, the last one again and again."""

    def __init__(self, *answers):
        self._answers = list(answers)

    def query(self, _sql, _properties, _variables):
        return self

    def __enter__(self):
        rows = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        header = RowsHeader("q", (("A", "STRING"), ("B", "DOUBLE")))
        return iter([[header], [Row(row, False, "") for row in rows], [FinalMessage("end")]])

    def __exit__(self, *_):
        return None


def test_an_answer_is_compared_once_the_store_has_followed(out, monkeypatch):
    monkeypatch.setattr(sessions, "_POLL_S", 0)
    session = UserSession(Streaming([], [["y", 1], ["x", 2]]), Show(make_console(out)))
    check = session.compared("it", "SELECT ..;", Counter([("x", 2), ("y", 1)]), ordered=True)
    assert check.equal
    assert [line.split()[0] for line in out.getvalue().splitlines()[-2:]] == ["y", "x"]


def test_an_answer_that_stays_wrong(out, monkeypatch):
    monkeypatch.setattr(sessions, "_CATCH_UP_S", 0)
    session = UserSession(Streaming([["x", [WrittenNumber("1.5")]]]), Show(make_console(out)))
    check = session.compared("it", "SELECT ..;", Counter())
    assert check.surplus == (("x", (1.5,)),)


def test_rows_have_plain_values(out):
    session = UserSession(Streaming([["x", WrittenNumber("2.5")]]), Show(make_console(out)))
    assert session.pull("SELECT ..;") == [("x", 2.5)]
    assert out.getvalue().splitlines()[-1].split() == ["x", "2.50"]
