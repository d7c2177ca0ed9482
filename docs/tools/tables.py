"""Writes the parts of the documents that come from the code: properties, functions, metrics.

A page marks such a part: ``<!-- generated: NAME -->`` before it, ``<!-- end: NAME -->`` after it.
``make docs-tables`` writes all of them again; a unit test finds pages that differ.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from ksql.app.metrics.table import SUBJECTS as METRICS
from ksql.core.properties.model import LONG_MAX, SUBJECTS
from ksql.functions.registry import BUILTINS, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ksql.app.metrics.table import Metric
    from ksql.core.properties.model import Property
    from ksql.functions.spec import Function

_COLUMNS = ("Property", "Type", "Default", "Scope", "Results", "Meaning")
_LONGEST_DEFAULT = 60
DOCS = Path(__file__).resolve().parents[1]
PAGES = ("configuration.md", "functions.md", "metrics.md")
PART = re.compile(r"(?<=<!-- generated: )(\w+) -->\n.*?(?=<!-- end: \1 -->)", re.DOTALL)
_SECTIONS = {
    "Json": "JSON",
    "Url": "URL",
    "Aggregate": "Aggregate functions",
    "Table": "Table functions",
}
_MARKUP = str.maketrans({"|": r"\|", "\n": " ", "<": "&lt;", "*": r"\*"})


def filled(markdown: str) -> str:
    """Return a page with its marked parts as the code gives them."""
    return PART.sub(lambda part: f"{part[1]} -->\n\n{GENERATED[part[1]]()}\n", markdown)


def functions() -> str:
    """List the library: a section per category and in it one per function."""
    by_category: dict[str, list[Function]] = defaultdict(list)
    for function in BUILTINS.all():
        category = function.category.capitalize()
        by_category[_SECTIONS.get(category, category)].append(function)
    parts = []
    for title in sorted(by_category, key=lambda name: ("functions" in name, name)):
        parts += [f"## {title}\n", *map(_function, by_category[title])]
    return "\n".join(parts)


def _function(function: Function) -> str:
    variations = describe(function)
    calls = [
        f"{variation} -> {variation.returns or 'as the arguments'}" for variation in variations
    ]
    notes = dict.fromkeys(variation.description for variation in variations)
    notes.pop(function.description, None)
    lines = [f"### {function.name}", _text(function.description)]
    lines.append("\n".join(["```text", *calls, "```"]))
    lines += [f"- {_text(note)}" for note in notes if note]
    return "\n\n".join(lines) + "\n"


def _text(text: str) -> str:
    """Escape what Markdown would read as markup; start with a capital letter."""
    return (text[:1].upper() + text[1:]).translate(_MARKUP)


def properties() -> str:
    """List the properties of the configuration: a section per subject and in it a table."""
    return "\n".join(f"## {title}\n\n{_table(rows)}" for title, rows in SUBJECTS.items())


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


def metrics() -> str:
    """List the metrics of a scrape: a section per subject and in it a table."""
    return "\n".join(f"### {title}\n\n{_metric_table(rows)}" for title, rows in METRICS)


def _metric_table(rows: Iterable[Metric]) -> str:
    columns = ("Metric", "Kind", "Labels", "Meaning", "Series", "ksqlDB's name")
    cells = [
        (
            f"`{row.shown}`",
            row.kind,
            ", ".join(f"`{label}`" for label in row.labels),
            row.doc,
            row.bound,
            f"`{row.jmx}`" if row.jmx else "",
        )
        for row in rows
    ]
    return "\n".join([_line(columns), _line(["---"] * len(columns)), *map(_line, cells)]) + "\n"


GENERATED: dict[str, Callable[[], str]] = {
    "functions": functions,
    "metrics": metrics,
    "properties": properties,
}


def main() -> None:
    """Write the parts into their pages.

    Raises: OSError.
    """
    for name in PAGES:
        page = DOCS / name
        page.write_text(filled(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
