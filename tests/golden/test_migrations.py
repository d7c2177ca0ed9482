"""The output of ``ksql migrations``, to the letter, over the whole service in memory.

A block is a command, or ``FILE name`` and the text of a migration file, which is written.
"""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.migrations.tool import Tool
from tests.unit.docs.memory import DocumentService
from tests.unit.server.web import serving

HERE = Path(__file__).parent
_FILE = "FILE "


class Shell:
    """A project and its commands as texts."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool

    def run(self, block: str) -> str:
        """The output of a command, and its status if that is not 0."""
        if block.startswith(_FILE):
            name, _, text = block.removeprefix(_FILE).partition("\n")
            (self._tool.root / "migrations" / name).write_text(text + "\n")
            return "written"
        words = block.replace("ksql migrations ", "").split(" ")
        status, out, errors = self._tool.ended(*words)
        ended = f"status {status}\n" if status else ""
        return f"{out}{errors}{ended}".rstrip("\n")


def test_commands(golden, tmp_path, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    with serving(DocumentService()) as (url, _):
        golden(HERE / "migrations.txt", Shell(Tool(tmp_path, url)).run)
