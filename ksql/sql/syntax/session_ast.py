"""The statements that change a session: its properties and variables, and scripts that it runs."""

from __future__ import annotations

from dataclasses import dataclass

from ksql.core import Span
from ksql.sql.syntax.expr import span_field


@dataclass(frozen=True, slots=True)
class SetProperty:
    """SET 'name' = 'value'."""

    name: str
    value: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class UnsetProperty:
    """UNSET 'name'."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class AlterSystem:
    """ALTER SYSTEM 'name' = 'value'."""

    name: str
    value: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Define:
    """DEFINE name = 'text'."""

    name: str
    value: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Undefine:
    """UNDEFINE name."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class RunScript:
    """RUN SCRIPT 'path' (CLI and test files)."""

    path: str
    span: Span = span_field()
