"""Describes the API as OpenAPI has it, and serves the pages /openapi.json and /docs.

Answers are entities and other dataclasses that become JSON by ``server.wire.to_wire``. Their
schemas are made from the same classes by the same rules, so they cannot differ. Source: OpenAPI
3.1; JSON Schema 2020-12.

The page /docs loads nothing from elsewhere: a foreign script could send statements.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from inspect import cleandoc
from typing import Any, Final, Literal

import fastapi_offline
from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, TypeAdapter
from starlette.staticfiles import StaticFiles

from ksql.control.statements import Entity
from ksql.core.types import SqlType
from server.wire import JSON, V1_JSON, camel

Schema = dict[str, Any]
COMPONENTS: Final[dict[str, Schema]] = {}
"""The named schemas, by name."""
_PLACE: Final = "#/components/schemas/"
_SCHEMA_INFO: Final = "SchemaInfo"
_PLAIN: Final[dict[object, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    Any: {},
}


def answers(what: object, *kinds: str) -> dict[int | str, dict[str, Any]]:
    """Describe a route's answers: a value of that type (or schema) as JSON, and errors."""
    schema = what if isinstance(what, dict) else schema_of(what)
    content: dict[str, Any] = {kind: {"schema": schema} for kind in kinds or (V1_JSON, JSON)}
    return {200: {"description": "done", "content": content}, **errors()}


def errors() -> dict[int | str, dict[str, Any]]:
    """Describe the answers of a route that fails."""
    content = {JSON: {"schema": {"$ref": _PLACE + "Error"}}}
    return {
        "4XX": {"description": "the request's fault", "content": content},
        "5XX": {"description": "the server's fault, or not now", "content": content},
    }


def takes(body: type[BaseModel]) -> dict[str, Any]:
    """Describe a route's body; it is read whatever content type it says."""
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema_of(body)}}}}


def schema_of(what: object) -> Schema:
    """Return the schema of a type's values on the wire; classes go to the components."""
    if what == SqlType:
        return _named(_SCHEMA_INFO, _schema_info)
    if what in _PLAIN:
        return _PLAIN[what]
    if isinstance(what, type) and issubclass(what, BaseModel):
        return _model(what)
    if isinstance(what, type) and dataclasses.is_dataclass(what):
        return _named(what.__name__, lambda: _object(what))
    if isinstance(what, type) and issubclass(what, Enum):
        return {"enum": [member.value for member in what]}
    return _compound(what)


def _compound(what: object) -> Schema:
    origin, arguments = typing.get_origin(what), typing.get_args(what)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(argument) for argument in arguments]}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": schema_of(arguments[0])}
    raise TypeError(f"no JSON is known for {what}")


def one_of(name: str, kinds: Sequence[type]) -> Schema:
    """Return the schema of a value that is of one of those classes, as a component."""
    return _named(name, lambda: {"anyOf": [schema_of(kind) for kind in kinds]})


def _named(name: str, make: Any) -> Schema:
    if name not in COMPONENTS:
        COMPONENTS[name] = {}  # it may mention itself
        COMPONENTS[name] = make()
    return {"$ref": _PLACE + name}


def _object(kind: type) -> Schema:
    hints = typing.get_type_hints(kind)
    properties: dict[str, Schema] = {}
    required = []
    if issubclass(kind, Entity):
        properties["@type"] = {"const": kind.type_name}
        required.append("@type")
    for field in dataclasses.fields(kind):
        name = camel(field.name)
        properties[name] = schema_of(hints[field.name])
        if not field.metadata.get("omit_none"):
            required.append(name)
    schema: Schema = {"type": "object", "properties": properties, "required": required}
    return schema | {"description": cleandoc(kind.__doc__ or "")}


def _model(kind: type[BaseModel]) -> Schema:
    """Return the schema of a body, which is pydantic's own, its parts among our components."""
    return _named(kind.__name__, lambda: _parts(kind))


def _parts(kind: type[BaseModel]) -> Schema:
    schema = TypeAdapter(kind).json_schema(ref_template=_PLACE + "{model}")
    COMPONENTS.update(schema.pop("$defs", {}))
    return schema


def _schema_info() -> Schema:
    """See ``server.wire.schema_info``."""
    this = {"$ref": _PLACE + _SCHEMA_INFO}
    field = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "schema": this},
        "required": ["name", "schema"],
    }
    none = {"type": "null"}
    parameters = {
        "type": "object",
        "properties": {"precision": {"type": "integer"}, "scale": {"type": "integer"}},
    }
    return {
        "type": "object",
        "description": "A type of SQL: its name, a STRUCT's fields, an ARRAY's or MAP's members.",
        "properties": {
            "type": {"type": "string"},
            "fields": {"anyOf": [{"type": "array", "items": field}, none]},
            "memberSchema": {"anyOf": [this, none]},
            "parameters": parameters,
        },
        "required": ["type", "fields", "memberSchema"],
    }


COMPONENTS["Error"] = {
    "type": "object",
    "description": "A failure; those of statements name the statement and what was done before.",
    "properties": {
        "@type": {"enum": ["generic_error", "statement_error"]},
        "error_code": {"type": "integer"},
        "message": {"type": "string"},
        "statementText": {"type": "string"},
        "entities": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["@type", "error_code", "message"],
}


OPENAPI: Final = "/openapi.json"
DOCS: Final = "/docs"
FILES: Final = "/docs-files"
_ABOUT: Final = """
ksqlDB's REST interface.

The body of a request is JSON, whatever its content type says; unknown fields are ignored. Rows are
streamed while they come; the form is chosen with `Accept`. Besides these routes there is the
websocket `/ws/query`, whose parameter `request` is a body of `/query`.
"""


def describe(app: FastAPI, version: str, *, secured: bool) -> None:
    """Serve the description of all routes that the application has by then.

    ``secured``: clients must name a user.
    """

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title="ksql", version=version, description=_ABOUT, routes=app.routes
            )
            components = document.setdefault("components", {})
            components.setdefault("schemas", {}).update(sorted(COMPONENTS.items()))
            if secured:
                components["securitySchemes"] = {"user": {"type": "http", "scheme": "basic"}}
                document["security"] = [{"user": []}]
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's way to extend it

    @app.get(DOCS, include_in_schema=False)
    async def docs() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url=OPENAPI,
            title="ksql",
            swagger_js_url=f"{FILES}/swagger-ui-bundle.js",
            swagger_css_url=f"{FILES}/swagger-ui.css",
            swagger_favicon_url=f"{FILES}/favicon.png",
        )

    app.mount(FILES, StaticFiles(packages=[(fastapi_offline.__name__, "static")]))
