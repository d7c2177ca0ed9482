"""Answers held against the API's description."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from ksql.control.statements.entities import Entity
from server.app import create_app
from server.wire import to_wire
from tests.unit.server.fakes import FakeService


@cache
def description() -> dict[str, Any]:
    """The whole document."""
    app = create_app(FakeService())
    app.state.context.release()
    document: dict[str, Any] = app.openapi()
    return document


@cache
def validator(reference: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": reference, "components": description()["components"]})


def check(value: object, name: str) -> None:
    """Raise unless the value is of that component."""
    validator(f"#/components/schemas/{name}").validate(value)


def check_entity(entity: Entity) -> None:
    """Raise unless the entity looks on the wire as it is described."""
    check(to_wire(entity), type(entity).__name__)


def check_answer(method: str, path: str, status: int, value: object) -> None:
    """Raise unless the answer is one that its path may give."""
    responses = description()["paths"][path][method.lower()]["responses"]
    key = str(status) if str(status) in responses else f"{status // 100}XX"
    schema = responses[key]["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": description()["components"]}).validate(value)
