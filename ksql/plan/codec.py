"""Plans to versioned JSON and back; the form stored in the command topic.

A dataclass is written as an object whose ``$`` is its class, a tuple as a list; run-time constants that JSON does not
have are tagged. The module knows the classes it may build, nothing else is ever instantiated.
"""

from __future__ import annotations

import base64
import dataclasses
import decimal
import enum
import json
import types
import typing
from functools import cache
from typing import Any

from ksql.analysis import bound
from ksql.base.errors import KsqlError
from ksql.plan import nodes
from ksql.types import format as formats
from ksql.types import model, schema

FORMAT_VERSION = 1


class UnreadablePlan(KsqlError):
    """A stored plan of a newer format, or one that is damaged."""

    code = 50000


def _classes() -> dict[str, type]:
    found: dict[str, type] = {}
    for module in (model, schema, formats, bound, nodes):
        for name, value in vars(module).items():
            if (
                isinstance(value, type)
                and value.__module__ == module.__name__
                and (dataclasses.is_dataclass(value) or issubclass(value, enum.Enum))
            ):
                tag = f"{module.__name__.rsplit('.', 1)[-1]}.{name}"
                found[tag] = value
    return found


_BY_TAG = _classes()
_TAG_OF = {cls: tag for tag, cls in _BY_TAG.items()}


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {"$": "double", "v": repr(value)}
        case decimal.Decimal():
            return {"$": "decimal", "v": str(value)}
        case bytes():
            return {"$": "bytes", "v": base64.b64encode(value).decode()}
        case enum.Enum():
            return {"$": _TAG_OF[type(value)], "v": value.value}
        case tuple() | list():
            return [_plain(item) for item in value]
        case dict():
            return {"$": "dict", "v": [[_plain(k), _plain(v)] for k, v in value.items()]}
        case _:
            fields = _field_names(type(value))
            return {"$": _TAG_OF[type(value)]} | {
                name: _plain(getattr(value, name)) for name in fields
            }


@cache
def _field_names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls) if f.init)


@cache
def _tuple_fields(cls: type) -> frozenset[str]:
    """The fields whose type is a run-time value and so keeps lists as lists."""
    hints = typing.get_type_hints(cls, vars(__import__(cls.__module__, fromlist=["_"])))
    return frozenset(name for name, hint in hints.items() if not _is_any(hint))


def _is_any(hint: object) -> bool:
    return hint is Any or (isinstance(hint, types.GenericAlias) and Any in typing.get_args(hint))


def _build(value: Any, *, tuples: bool = True) -> Any:
    match value:
        case list():
            items = [_build(item, tuples=tuples) for item in value]
            return tuple(items) if tuples else items
        case {"$": "double", "v": text}:
            return float(text)
        case {"$": "decimal", "v": text}:
            return decimal.Decimal(text)
        case {"$": "bytes", "v": text}:
            return base64.b64decode(text)
        case {"$": "dict", "v": entries}:
            return {_build(k): _build(v, tuples=tuples) for k, v in entries}
        case {"$": tag, **rest}:
            cls = _BY_TAG.get(tag)
            if cls is None:
                raise UnreadablePlan(f'unknown plan element "{tag}"')
            if issubclass(cls, enum.Enum):
                return cls(rest["v"])
            typed = _tuple_fields(cls)
            return cls(**{k: _build(v, tuples=k in typed) for k, v in rest.items()})
        case _:
            return value


def dumps(plan: nodes.QueryPlan) -> str:
    """The plan as JSON text; the same plan always gives the same text."""
    body = {"version": FORMAT_VERSION, "plan": _plain(plan)}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def loads(text: str) -> nodes.QueryPlan:
    """Read a plan back.

    Raises: UnreadablePlan for a newer version or a damaged text.
    """
    try:
        body = json.loads(text)
        version = body["version"]
        if version > FORMAT_VERSION:
            raise UnreadablePlan(
                f"the plan has format {version}, this version reads up to {FORMAT_VERSION}"
            )
        plan: nodes.QueryPlan = _build(body["plan"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadablePlan("the stored plan is damaged", detail=str(error)) from error
    return plan
