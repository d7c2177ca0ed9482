"""The content of a test file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Status = Literal["passed", "failed", "unsupported"]


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """The window of a record's key; ``end`` counts for sessions only."""

    start: int
    end: int
    kind: Literal["time", "session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """An input, or an expected output; values as JSON with number tokens."""

    topic: str
    key: Any
    value: Any
    timestamp: int | None
    window: WindowBounds | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class ExpectedException:
    """The exception that a case expects; ``cause`` is a part of what its cause says."""

    type: str | None
    message: str | None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class SchemaDef:
    """A schema that is registered for a topic.

    ``references`` are name, kind and text of the schemas that it imports.
    """

    kind: str
    text: str
    id: int | None = None
    references: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDef:
    """A topic that the case lists or implies."""

    name: str
    partitions: int = 1
    replicas: int = 1
    key: SchemaDef | None = None
    value: SchemaDef | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Some statements, then some inputs.

    ``refused`` marks a statement that must fail, with a part of its message.
    """

    statements: tuple[Statement, ...]
    inputs: tuple[CaseRecord, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a step."""

    sql: str
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestPart:
    """The parts of a case for a running server besides statements and records.

    ``waits``: the records come once the one push query has begun to answer. ``proto``: the queries
    are asked a second time, for answers in protobuf. ``ordered``: rows come in the order of the
    case.
    """

    responses: tuple[Mapping[str, Any], ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None
    waits: bool = False
    proto: bool = False
    ordered: bool = False


@dataclass(frozen=True, kw_only=True)
class QueryTestCase:
    """One run of a test."""

    id: str
    steps: tuple[Step, ...]
    outputs: tuple[CaseRecord, ...]
    topics: tuple[TopicDef, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    expected: ExpectedException | None = None
    post: Mapping[str, Any] = field(default_factory=dict)
    exact_numbers: bool = True
    sql_block: str | None = None
    rest: RestPart | None = None
    scripts: Path | None = None  # where RUN SCRIPT looks, and above it


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a case; ``more`` are differences besides the one that ``reason`` names."""

    id: str
    status: Status
    seconds: float
    reason: str = ""
    more: tuple[str, ...] = ()


class Unsupported(Exception):
    """The case needs something that this version does not run."""


class Mismatch(Exception):
    """The case ran and something differs from what it expects; ``more`` are further differences."""

    def __init__(self, reason: str, *more: str) -> None:
        super().__init__(reason)
        self.more = more
