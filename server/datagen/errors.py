"""Refusals of ``ksql datagen``, before it writes a record."""

from __future__ import annotations

from ksql.core import KsqlError


class BadSchema(KsqlError):
    """A schema that no records can be made of."""


class BadOption(KsqlError):
    """An option that is not known, or whose value does not fit."""
