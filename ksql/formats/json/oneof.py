"""A JSON value that is of one of several types: a struct with a member for each.

The first type that the value may be of counts; among objects it is the one that shares most names.
Source: docs/formats.md#json_sr; Confluent's converter (``oneOf``).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from ksql.formats.serde import Bad
from ksql.types import model

if TYPE_CHECKING:
    from ksql.types.model import SqlType

Written = (
    Literal["boolean", "whole", "number", "fraction", "text", "array", "map"]
    | frozenset[str]
    | None
)
"""A member's JSON: its kind, the names of an object's properties, or None if it is neither."""

_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "boolean": (bool,),
    "whole": (int,),
    "number": (int, float, Decimal),
    "fraction": (float, Decimal),
    "text": (str,),
    "array": (list,),
    "map": (dict, list),
}


@dataclass(frozen=True, slots=True)
class OneOf(model.Struct):
    """A struct of which one member is there; ``written`` are the members' kinds of JSON."""

    written: tuple[Written, ...] = ()

    def choose(self, value: Any) -> int:
        """Return the index of the member that a value belongs to.

        Raises: Bad if it is none of them.
        """
        kind, chosen, most = type(value), -1, -1
        for index, written in enumerate(self.written):
            if isinstance(written, str):
                if kind in _CLASSES[written]:
                    return index
            elif written is not None and kind is dict:
                shared = len(written & value.keys())
                if shared > most:
                    chosen, most = index, shared
        if chosen < 0:
            shown = orjson.dumps(value, default=str).decode()
            raise Bad(f"Did not find matching oneof field for data: {shown}", "")
        return chosen


def has_choice(type_: SqlType) -> bool:
    """Return whether there is such a struct in the type."""
    match type_:
        case OneOf():
            return True
        case model.Array(item):
            return has_choice(item)
        case model.Map(_, value):
            return has_choice(value)
        case model.Struct(fields):
            return any(has_choice(field.type) for field in fields)
        case _:
            return False
