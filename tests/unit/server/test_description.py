"""The API's description is whole, and true of what the routes answer."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from ksql.control.statements import entities as e
from ksql.control.statements.execute import RequestFailed
from ksql.control.statements.upgradereport import UpgradeReport
from ksql.core.errors import StatementError
from server.answers.row_encoders import FORMS_OF_QUERY, FORMS_OF_QUERY_STREAM
from server.app import ROUTERS
from tests.unit.server.entities import UPGRADE
from tests.unit.server.fakes import FakeService, FakeStream, created, rows
from tests.unit.server.schemas import check, check_answer, check_entity, description
from tests.unit.server.web import ask

HIDDEN = {
    ("GET", "/ws/query"),
    ("POST", "/stores/read"),
    ("GET", "/stores/processed"),
    ("GET", "/queries/reports"),
}
DATA = [rows((1, "a"))]
BODIES: dict[str, Any] = {
    "/ksql": {"ksql": "CREATE;"},
    "/ksql/dry-run": {"ksql": "CREATE;"},
    "/ksql/terminate": {},
    "/query": {"ksql": "SELECT;"},
    "/query-stream": {"sql": "SELECT;"},
    "/close-query": {"queryId": "transient_S_1"},
    "/inserts-stream": {"target": "S"},
    "/heartbeat": {"hostInfo": {"host": "h", "port": 1}},
    "/lag": {"ksqlHost": {"host": "h", "port": 1}, "hostStoreLags": {}},
}
PARAMETERS = {
    "{command_id}": "stream/%60S%60/create",
    "{name}": "auto.offset.reset",
    "{table}": "T",
    "{upgrade_id}": "default_/CTAS_N_1/7",
}


def answer_to(text: str) -> list[e.Entity]:
    if text == "SHOW UPGRADES;":
        return [e.Upgrades(statement_text=text, upgrades=(UPGRADE.info,))]
    if text.startswith("DESCRIBE UPGRADE"):
        return [e.UpgradeDescriptionEntity(statement_text=text, upgrade_description=UPGRADE)]
    return [created()]


def service() -> FakeService:
    return FakeService(answer=answer_to, stream=lambda: FakeStream(DATA, "pull"), healthy=True)


def operations() -> list[tuple[str, str]]:
    paths = description()["paths"]
    return [(method.upper(), path) for path, operations_ in paths.items() for method in operations_]


def sent(method: str, path: str, **more: Any) -> Any:
    for name, value in PARAMETERS.items():
        path = path.replace(name, value)
    body = {"json": BODIES[path]} if method == "POST" else {}
    return ask(service(), method, path, **body, **more)


def test_every_route_is_described() -> None:
    routes: list[Any] = [route for router in ROUTERS for route in router.routes]
    there = {
        (method, re.sub(r":path}", "}", route.path))
        for route in routes
        for method in getattr(route, "methods", ())
    }
    assert set(operations()) == there - HIDDEN
    for method, path in operations():
        operation = description()["paths"][path][method.lower()]
        assert operation["description"], path
        assert ("requestBody" in operation) == (method == "POST"), path


def test_schemas_are_schemas_and_all_that_is_named_is_there() -> None:
    schemas = description()["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(description())))
    assert named <= set(schemas)


@pytest.mark.parametrize(("method", "path"), operations())
def test_an_answer_is_as_described(method: str, path: str) -> None:
    answer = sent(method, path, headers={"accept": "application/json"})
    if path == "/":
        assert answer.status_code == 307
    elif path == "/close-query":
        assert (answer.status_code, answer.content) == (200, b"")
    elif path == "/metrics":
        assert (answer.status_code, answer.headers["content-type"][:10]) == (200, "text/plain")
    else:
        assert answer.status_code == 200
        check_answer(method, path, 200, answer.json())


@pytest.mark.parametrize(("method", "path"), operations())
def test_the_media_types_are_those_that_are_answered(method: str, path: str) -> None:
    content = description()["paths"][path][method.lower()]["responses"].get("200", {})
    kinds = {kind for kind in content.get("content", {}) if not kind.startswith("text/")}
    for kind in kinds:
        answer = sent(method, path, headers={"accept": kind})
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    if kinds and not path.startswith(("/chc", "/livez", "/readyz")):  # these do not look at it
        assert sent(method, path, headers={"accept": "image/png"}).status_code == 406


def test_all_forms_of_rows_are_described() -> None:
    paths = description()["paths"]
    for path, forms in (("/query", FORMS_OF_QUERY), ("/query-stream", FORMS_OF_QUERY_STREAM)):
        assert set(forms) < set(paths[path]["post"]["responses"]["200"]["content"])


@pytest.mark.parametrize("kind", ["application/json", "application/vnd.ksql.v1+json"])
def test_rows_and_errors_after_them_are_described(kind: str) -> None:
    def failing() -> FakeStream:
        return FakeStream([*DATA, StatementError("no more")])

    fake = FakeService(stream=failing)
    body = {"ksql": "SELECT;"}
    answer = ask(fake, "POST", "/query", json=body, headers={"accept": kind}).json()
    assert "errorMessage" in answer[-1]
    check_answer("POST", "/query", 200, answer)


def test_errors_are_described() -> None:
    failed = RequestFailed(StatementError("no"), "CREATE;", [created()])
    answer = ask(FakeService(answer=failed), "POST", "/ksql", json=BODIES["/ksql"])
    check_answer("POST", "/ksql", answer.status_code, answer.json())
    answer = ask(FakeService(), "POST", "/ksql", content=b"{")
    check_answer("POST", "/ksql", answer.status_code, answer.json())


def test_a_health_that_is_not_good_is_described() -> None:
    answer = ask(FakeService(healthy=False), "GET", "/healthcheck")
    check_answer("GET", "/healthcheck", answer.status_code, answer.json())


def test_an_upgrade_report_is_part_of_a_status() -> None:
    report = UpgradeReport(accepted=True, classes=("transparent",), query_id="CSAS_S_0")
    check_entity(
        e.CurrentStatus(
            statement_text="CREATE OR REPLACE ..;",
            command_id="stream/`S`/create",
            command_status=created().command_status,
            upgrade=report,
        )
    )
    schema = description()["components"]["schemas"]["CurrentStatus"]
    assert schema["properties"]["upgrade"]["anyOf"][0] == {
        "$ref": "#/components/schemas/UpgradeReport"
    }
    assert "upgrade" not in schema["required"]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"@type": "streams", "statementText": "S;", "warnings": [], "streams": []},
        {"@type": "tables", "statementText": 1, "warnings": [], "tables": []},
        {"@type": "tables", "statementText": "S;", "warnings": [], "tables": [{}]},
    ],
)
def test_undescribed_field_is_noticed(value: object) -> None:
    with pytest.raises(ValidationError):
        check(value, "Tables")


def test_bodies_that_are_described_are_taken() -> None:
    body = {
        "ksql": "S;",
        "streamsProperties": {"a": "1", "b": 2, "c": True, "d": None, "e": 0.5},
        "sessionVariables": None,
        "requestProperties": {},
        "commandSequenceNumber": 4,
    }
    check(body, "KsqlRequest")
    assert ask(service(), "POST", "/ksql", json=body).status_code == 200
    with pytest.raises(ValidationError):
        check(body | {"streamsProperties": {"a": []}}, "KsqlRequest")


def test_the_page_loads_nothing_from_elsewhere() -> None:
    page = ask(FakeService(), "GET", "/docs")
    assert page.headers["content-type"].startswith("text/html")
    links = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(links) == 3
    for link in links:
        assert link.startswith("/docs-files/")
        assert ask(FakeService(), "GET", link).status_code == 200
    assert "//" not in re.sub(r"//[^\n]*\n", "", page.text)
    assert ask(FakeService(), "GET", "/openapi.json").json() == description()
