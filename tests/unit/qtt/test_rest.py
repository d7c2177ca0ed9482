"""How answers of REST cases are compared."""

from __future__ import annotations

import pytest

from qtt import tokens
from qtt.model import Case, Mismatch, RestPart, Statement, Step, Unsupported
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


def test_entities_are_compared_by_their_expected_members():
    got = '{"admin": {"@type": "streams", "streams": [{"name": "A", "topic": "a"}]}}'
    answer('{"admin": {"@type": "streams", "streams": [{"name": "A"}]}}', got)
    with pytest.raises(Mismatch, match="streams"):
        answer('{"admin": {"@type": "tables"}}', got)


def test_queries_are_requests_of_their_own_however_they_are_written():
    made = "CREATE STREAM s (a INT) WITH (x='SELECT'); DROP STREAM s;"
    texts = (made, "select\n1;", "LIST TYPES;")
    case = Case("n", (Step(tuple(map(Statement, texts)), ()),), ())
    admin, queries = requests(case)
    assert admin == "CREATE STREAM s (a INT) WITH (x='SELECT');\nDROP STREAM s;"
    assert [query.text for query in queries] == ["select\n1;", "LIST TYPES;"]


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


def test_what_is_not_there_yet_is_no_failure():
    body = {**BODY, "message": "a join is not supported yet"}
    with pytest.raises(Unsupported):
        check_refusal(RestPart(), Refused(400, body, "SELECT 1;"))
