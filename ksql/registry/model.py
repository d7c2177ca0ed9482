"""The objects that a registry keeps, as its rules see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ksql.formats.schema_registry import Schema

EVERYWHERE: Final = ""
"""The subject whose settings hold for all that have none of their own."""


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A schema with both of its ids."""

    id: int
    guid: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version of a subject."""

    subject: str
    version: int
    schema_id: int
    deleted: bool


@dataclass(frozen=True, slots=True)
class SubjectSettings:
    """The settings of one subject; None is not set."""

    compatibility: str | None = None
    mode: str | None = None
    normalize: bool | None = None
