"""The composition root: the one package that sees every layer."""

# mypy: implicit-reexport
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ksql.app.service import KsqlService
from ksql.core import Settings


def create_service(configuration: Mapping[str, str]) -> KsqlService:
    """Return a server's service from its configuration; nothing is started yet."""
    return KsqlService(Settings(dict(configuration)))
