"""``ksql migrations`` over a service in memory: commands in, texts out."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path

from server.cli.migrations.main import main
from server.cli.screen import Screen

BEGIN_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
_SECONDS = re.compile(r"Execution time: [0-9.]+ seconds\n")


class Tool:
    """A project and what its commands print; the clock moves a second per look."""

    def __init__(self, directory: Path, url: str) -> None:
        self.root = directory / "shop"
        self.config = self.root / "ksql-migrations.properties"
        self._directory = directory
        self._clock = itertools.count(BEGIN_MS, 1000)
        self.run("new-project", str(self.root), url)

    def run(self, *arguments: str) -> str:
        """Return the output of a command that works."""
        status, out, errors = self.ended(*arguments)
        assert (status, errors) == (0, "")
        return out

    def fails(self, *arguments: str) -> str:
        """Return the errors of a command that fails."""
        status, _, errors = self.ended(*arguments)
        assert status == 1
        return errors

    def ended(self, *arguments: str) -> tuple[int, str, str]:
        """Status, output and errors of a command."""
        out, errors = io.StringIO(), io.StringIO()
        known = () if arguments[0] == "new-project" else ("-c", str(self.config))
        status = main([*known, *arguments], Screen(out, errors), lambda: next(self._clock))
        shown = out.getvalue()
        assert _SECONDS.search(shown), shown
        return status, self._plain(_SECONDS.sub("", shown)), self._plain(errors.getvalue())

    def file(self, version: int, name: str, text: str) -> Path:
        """Write a migration file."""
        path = self.root / "migrations" / f"V{version:06}__{name}.sql"
        path.write_text(text)
        return path

    def states(self) -> list[str]:
        """The state of each file, as ``info`` shows it."""
        lines = self.run("info").splitlines()
        return [re.split(r"\s{2,}", line)[2] for line in lines if line[:1].isdecimal()]

    def _plain(self, text: str) -> str:
        return text.replace(str(self._directory), "DIR")
