"""The page of the documentation that lists every property, made from the table.

``python -m ksql.base.properties.page docs/configuration.md`` writes it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.base.properties.model import LONG_MAX
from ksql.base.properties.table import SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ksql.base.properties.model import Property

_HEAD: Final = """\
# Configuration

<!-- Made by python -m ksql.base.properties.page: change ksql/base/properties/table.toml. -->

`ksql server --config FILE.properties -o KEY=VALUE` starts the server with the properties of a file
and with single ones; an option is stronger than the file. Names are ksqlDB's. Those of Kafka may
be written with or without the prefix `ksql.streams.`. `SHOW PROPERTIES;` lists all values.

The server checks its configuration before it starts anything. A value of the wrong type or out of
its bounds ends the start with an error. A name that nothing reads gives a warning, with the name
that was probably meant.

A property has one of three scopes:

- **server**: one value for the whole server, set in its configuration only.
- **session**: can also be set in a session (`SET 'name' = 'value';`) or with a request, and is read
  while a statement is prepared or answered.
- **query**: can be set in the same ways, and is kept with a query that is created. A replacement
  inherits it from the running query unless its request or session states a value.

**Results** marks the properties that decide the results of a query: they belong to its plan, and a
replacement that states another value changes the query.
"""
_TAIL: Final = """\
## Properties of others

| Names | Read by |
|---|---|
| `ksql.functions.<function>.<name>` | the function of that name; scope query |
| `spark.*` | Spark, as they are |
| `ksql.schema.registry.basic.auth.user.info`, `ksql.schema.registry.ssl.*` | \
the client of the schema registry |
| `ksql.streams.producer.*`, `ksql.streams.consumer.*`, `ksql.streams.admin.*`, `ksql.streams.*`, \
or without prefix | Kafka's clients; the longest prefix wins |

`ksql.streams.consumer.isolation.level=read_uncommitted` lets at-least-once queries read the records
of aborted transactions too.

## Topics that no setting opens

Kafka's own topics (`__consumer_offsets` and others), `_schemas*` and the topics that a service
keeps for itself (`_confluent-ksql-*`: command topics, changelogs) are closed to every statement,
also to reading and PRINT. The processing log can be read.
"""
_COLUMNS: Final = ("Property", "Type", "Default", "Scope", "Results", "Meaning")
_LONGEST_DEFAULT: Final = 60


def page() -> str:
    """Return the whole page in Markdown."""
    sections = (f"## {title}\n\n{_table(rows)}" for title, rows in SUBJECTS.items())
    return "\n".join([_HEAD, *sections, _TAIL])


def _table(rows: Iterable[Property]) -> str:
    lines = [_line(_COLUMNS), _line(["---"] * len(_COLUMNS)), *map(_line, map(_cells, rows))]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _cells(row: Property) -> tuple[str, ...]:
    effect = "" if row.effect else " **Accepted for compatibility; it has no effect.**"
    return (
        f"`{row.name}`",
        _type(row),
        _default(row),
        row.scope,
        "decides" if row.decides_results else "",
        row.doc + effect,
    )


def _type(row: Property) -> str:
    match row.kind:
        case "int" if row.high == LONG_MAX:
            return f"number, at least {row.low:,}"
        case "int":
            return f"number, {row.low:,} to {row.high:,}"
        case "bool":
            return "`true` or `false`"
        case "choice":
            return " or ".join(f"`{choice}`" for choice in row.choices)
        case "list":
            return "list with commas"
        case "text":
            return "text"


def _default(row: Property) -> str:
    if len(row.default) <= _LONGEST_DEFAULT:
        return f"`{row.default}`" if row.default else ""
    return "<br>".join(f"`{part}`" for part in row.default.split(","))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
