"""The table of properties: loads ``table.toml``, finds a property, and checks a value."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final, Literal, get_args

from ksql.core.errors import KsqlError, excerpt
from ksql.core.secrets import HIDDEN, is_secret, without_secrets

LONG_MAX: Final = 2**63 - 1
_WHOLE = re.compile(r"-?[0-9]{1,20}")

Kind = Literal["text", "list", "int", "bool", "choice"]
"""A ``list`` is a text of names or patterns with commas between them."""

Part = Literal["plan", "query", "statement", "service"]
"""What a property belongs to, and so what becomes of it when a running query is replaced.

``plan``       it changes results: kept in the query's plan; a replacement inherits the running
               plan's value unless its request or session states one, and a difference is a change
``query``      how a query is run, not what it gives: kept with the query, inherited alike
``statement``  read while a statement is prepared or answered; its effect is part of the plan
``service``    one value for the whole server; cannot be SET
"""

Scope = Literal["server", "session", "query"]
"""Where a value holds: in the whole server, in a session, or in the query that was made with it."""

_SCOPES: Final[dict[Part, Scope]] = {
    "plan": "query",
    "query": "query",
    "statement": "session",
    "service": "server",
}


class InvalidProperty(KsqlError):
    """A property's value that is not of its type or lies out of its bounds."""

    operator = True

    def __init__(self, name: str, value: str, expected: str) -> None:
        shown = HIDDEN if is_secret(name) else excerpt(without_secrets(value))
        super().__init__(f"Invalid value {shown} for property {name}: expected {expected}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One property; sessions and requests can set all but those of the server.

    ``doc`` is one sentence for the documentation. ``family`` is the scope that LIST PROPERTIES
    shows. A property without ``effect`` is accepted for ksqlDB's sake and read by nothing. In a
    server's configuration it ``stands_for`` another one, if that is not stated.
    """

    name: str
    kind: Kind
    default: str
    doc: str
    part_of: Part = "service"
    family: Literal["KSQL", "KAFKA"] = "KSQL"
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = LONG_MAX
    effect: bool = True
    stands_for: str = ""

    @property
    def editable(self) -> bool:
        """Whether sessions may set it."""
        return self.part_of != "service"

    @property
    def scope(self) -> Scope:
        """Where its value holds."""
        return _SCOPES[self.part_of]

    @property
    def decides_results(self) -> bool:
        """Whether another value may give a query other results."""
        return self.part_of == "plan"

    def expected(self) -> str:
        """Describe the values that are accepted; empty if every text is."""
        match self.kind:
            case "int":
                return f"a whole number from {self.low} to {self.high}"
            case "bool":
                return "true or false"
            case "choice":
                return " or ".join(self.choices)
            case "text" | "list":
                return ""

    def accepts(self, value: str) -> bool:
        """Return whether the value is of the property's type and within its bounds."""
        match self.kind:
            case "int":
                return _WHOLE.fullmatch(value) is not None and self.low <= int(value) <= self.high
            case "bool":
                return value.lower() in ("true", "false")
            case "choice":
                return value.lower() in self.choices
            case "text" | "list":
                return True

    def check(self, value: str) -> None:
        """Refuse a value that the property cannot have.

        Raises: InvalidProperty.
        """
        if not self.accepts(value):
            raise InvalidProperty(self.name, value, self.expected())


def comma_list(text: str) -> tuple[str, ...]:
    """Split the value of a list at its commas; blanks around the parts and empty parts go."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _subjects() -> dict[str, tuple[Property, ...]]:
    text = files(__package__).joinpath("table.toml").read_text(encoding="utf-8")
    return {
        subject["title"]: tuple(
            _property(name, {"part": subject["part"], **row})
            for name, row in subject["rows"].items()
        )
        for subject in tomllib.loads(text).values()
    }


def _property(name: str, row: dict[str, Any]) -> Property:
    kind: Kind = next(word for word in get_args(Kind) if word in row)
    default, part, choices = row.pop(kind), row.pop("part"), row.pop("of", ())
    if part not in get_args(Part):
        raise ValueError(f"{name} belongs to {part!r}")
    return Property(
        name=name,
        kind=kind,
        default=str(default).lower() if kind == "bool" else str(default),
        part_of=part,
        choices=tuple(choices),
        **row,
    )


SUBJECTS: Final = _subjects()
PROPERTIES: Final[dict[str, Property]] = {
    row.name: row for rows in SUBJECTS.values() for row in rows
}
PLAN_PROPERTIES: Final = tuple(row.name for row in PROPERTIES.values() if row.decides_results)
