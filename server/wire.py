"""The forms on the wire: request bodies as they must be, entities as JSON.

Source: ksqlDB developer guide, REST API.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ksql.control.statements import Entity
from ksql.core import KsqlError
from ksql.core.types import SqlType, model

V1_JSON = "application/vnd.ksql.v1+json"
JSON = "application/json"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
V1_PROTOBUF = "application/vnd.ksql.v1+protobuf"
INFO = "request.ksql.query.pull.consistency.info"
MOST_NAMES = 10_000
"""Properties or variables of a request: the event loop looks at each of them."""
_SQL_TYPES = (model.Primitive, model.Decimal, model.Array, model.Map, model.Struct)


class BadRequest(KsqlError):
    """A request whose body is not what the endpoint takes."""


# --- requests ------------------------------------------------------------------------------------


class Body(BaseModel):
    """A request body; fields that nobody knows are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def _texts(value: object) -> dict[str, str]:
    """Return property values as texts; JSON's numbers and booleans are written as SQL would."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("must be an object of names and values")
    if len(value) > MOST_NAMES:
        raise ValueError(f"has more than {MOST_NAMES} names")
    for name, member in value.items():
        if isinstance(member, dict | list):
            raise ValueError(f"the value of '{name}' must be a text, a number or a boolean")
    return {
        name: member if isinstance(member, str) else json.dumps(member)
        for name, member in value.items()
        if member is not None
    }


Texts = Annotated[
    dict[str, str],
    BeforeValidator(
        _texts,
        json_schema_input_type=dict[str, str | int | float | bool | None] | None,
    ),
]
"""Properties or variables."""


def is_on(properties: Mapping[str, str], name: str) -> bool:
    """Return whether a request has that property and it is true."""
    return properties.get(name, "").lower() == "true"


class KsqlRequest(Body):
    """The body of /ksql and /query, and the parameter of the websocket."""

    ksql: str
    streams_properties: Texts = Field(default={}, alias="streamsProperties")
    session_variables: Texts = Field(default={}, alias="sessionVariables")
    request_properties: Texts = Field(default={}, alias="requestProperties")
    command_sequence_number: int | None = Field(default=None, alias="commandSequenceNumber")


B = TypeVar("B", bound=Body)


def parse_body(text: bytes, kind: type[B]) -> B:
    """Return a JSON body.

    Raises: BadRequest naming the first field that is wrong.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise BadRequest(_first_problem(error)) from None


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, problem["loc"]))
    match problem["type"]:
        case "json_invalid":
            return f"the request body is not valid JSON: {problem['ctx']['error']}"
        case "missing":
            return f"the request body lacks the field '{field}'"
        case "model_type":
            return "the request body must be a JSON object"
        case _:
            said = problem["msg"].removeprefix("Value error, ")
            return f"the field '{field}' of the request body is wrong: {said}"


# --- entities ------------------------------------------------------------------------------------


def camel(name: str) -> str:
    """Return ``query_host_status`` as ``queryHostStatus``."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


@dataclasses.dataclass(frozen=True, slots=True)
class _Slot:
    attribute: str
    key: str
    omit_none: bool


_SLOTS: dict[type, tuple[_Slot, ...]] = {}


def _slots(kind: type) -> tuple[_Slot, ...]:
    known = _SLOTS.get(kind)
    if known is None:
        known = _SLOTS[kind] = tuple(map(_slot, dataclasses.fields(kind)))
    return known


def _slot(field: dataclasses.Field[Any]) -> _Slot:
    return _Slot(field.name, camel(field.name), bool(field.metadata.get("omit_none")))


def to_wire(value: object) -> object:
    """Return an entity, or any part of one, as JSON values."""
    if isinstance(value, _SQL_TYPES):
        return schema_info(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object(value)
    if isinstance(value, Mapping):
        return {str(key): to_wire(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [to_wire(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def _object(value: object) -> dict[str, Any]:
    form: dict[str, Any] = {}
    if isinstance(value, Entity):
        form["@type"] = value.type_name
    for slot in _slots(type(value)):
        item = getattr(value, slot.attribute)
        if item is not None or not slot.omit_none:
            form[slot.key] = to_wire(item)
    return form


def schema_info(type_: SqlType) -> dict[str, Any]:
    """Return a type as the API describes it: its name, fields, member type and parameters."""
    match type_:
        case model.Primitive(kind):
            return _info(kind.value)
        case model.Decimal(precision, scale):
            return _info("DECIMAL") | {"parameters": {"precision": precision, "scale": scale}}
        case model.Array(item):
            return _info("ARRAY", member=item)
        case model.Map(_, value):
            return _info("MAP", member=value)
        case model.Struct(fields):
            described = [{"name": f.name, "schema": schema_info(f.type)} for f in fields]
            return _info("STRUCT", fields=described)


def _info(
    name: str, *, fields: list[dict[str, Any]] | None = None, member: SqlType | None = None
) -> dict[str, Any]:
    return {
        "type": name,
        "fields": fields,
        "memberSchema": None if member is None else schema_info(member),
    }
