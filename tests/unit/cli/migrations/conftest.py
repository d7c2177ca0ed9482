from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.migrations.tool import Tool
from tests.unit.docs.memory import DocumentService
from tests.unit.server.web import serving


@pytest.fixture
def memory() -> DocumentService:
    """A service in memory: its statements and queries are real."""
    return DocumentService()


@pytest.fixture
def fresh(memory: DocumentService, tmp_path: Path) -> Iterator[Tool]:
    """A new project."""
    with serving(memory) as (url, _):
        yield Tool(tmp_path, url)


@pytest.fixture
def tool(fresh: Tool) -> Tool:
    """A project whose metadata is there."""
    fresh.run("initialize-metadata")
    return fresh
