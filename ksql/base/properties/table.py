"""All properties, by subject and by name, as ``table.toml`` has them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any, Final, get_args

from ksql.base.properties.model import Kind, Part, Property


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
