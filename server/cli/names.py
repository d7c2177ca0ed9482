"""The names on the server: sources with their columns, functions, queries, topics, properties."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from server.cli.client import Client, JsonObject
from server.cli.grid import type_text
from server.cli.words import RESERVED

NAME_STATEMENTS = (
    "DESCRIBE STREAMS; DESCRIBE TABLES; SHOW FUNCTIONS; SHOW QUERIES; SHOW TOPICS; "
    "SHOW PROPERTIES; SHOW TYPES;"
)
_BARE = re.compile(r"[A-Z_][A-Z0-9_@]*\Z")


@dataclass(frozen=True, slots=True)
class Source:
    """A stream or table; names as they must be written, columns with their types."""

    name: str
    kind: str = "STREAM"
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names that a statement may use."""

    sources: tuple[Source, ...] = ()
    functions: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


def fetch_names(client: Client) -> Names:
    """Ask the server for all names.

    Raises: ServerFailure, Unreachable.
    """
    names: defaultdict[str, list[str]] = defaultdict(list)
    sources: list[Source] = []
    for entity in client.execute(NAME_STATEMENTS):
        sources += map(_source, entity.get("sourceDescriptions") or ())
        for key in ("functions", "queries", "topics"):
            names[key] += [item.get("name") or item["id"] for item in entity.get(key) or ()]
        names["properties"] += map(_setting, filter(_may_be_set, entity.get("properties") or ()))
        names["types"] += entity.get("types") or ()
    return Names(
        sources=tuple(sources),
        functions=tuple(names["functions"]),
        queries=tuple(names["queries"]),
        topics=tuple(names["topics"]),
        properties=tuple(sorted(set(names["properties"]))),
        types=tuple(map(quoted, names["types"])),
    )


def _may_be_set(item: JsonObject) -> bool:
    return bool(item.get("editable", True))


def _setting(item: JsonObject) -> str:
    """Return the name of a property, without the prefix that SET does not need."""
    return str(item["name"]).removeprefix("ksql.streams.")


def _source(description: JsonObject) -> Source:
    columns = [(quoted(f["name"]), type_text(f["schema"])) for f in description["fields"]]
    return Source(quoted(description["name"]), description["type"], tuple(columns))


def quoted(name: str) -> str:
    """Return the name as it must be written in a statement."""
    bare = _BARE.match(name) and name not in RESERVED
    return name if bare else "`" + name.replace("`", "``") + "`"
