"""What is said of one setting: its name, type, default, and what it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["plan", "query", "statement", "service"]
"""What a property belongs to, and so what becomes of it when a running query is replaced.

``plan``       it changes results: kept in the query's plan; a replacement inherits the running
               plan's value unless its request or session states one, and a difference is a change
``query``      how a query is run, not what it gives: kept with the query, inherited alike
``statement``  read while a statement is prepared or answered; what it decides stands in the plan
``service``    one value for the whole server; cannot be SET
"""


@dataclass(frozen=True, slots=True)
class Property:
    """One property; those that belong to no service can be SET for a session or a request."""

    name: str
    type: Literal["text", "int", "bool", "choice"]
    default: str
    part_of: Part = "service"
    scope: Literal["KSQL", "KAFKA"] = "KSQL"
    choices: tuple[str, ...] = ()
    doc: str = ""

    @property
    def editable(self) -> bool:
        """Whether sessions may set it."""
        return self.part_of != "service"


def declared(
    name: str,
    type_: Literal["text", "int", "bool", "choice"],
    default: str,
    doc: str,
    *,
    part_of: Part = "service",
    scope: Literal["KSQL", "KAFKA"] = "KSQL",
    choices: tuple[str, ...] = (),
) -> Property:
    """A property, as the table writes it."""
    return Property(name, type_, default, part_of, scope, choices, doc)
