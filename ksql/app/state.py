"""The state directory: whose it is, and where everything lies in it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ksql.base.errors import StartError
from ksql.base.lock import FileLock

if TYPE_CHECKING:
    from ksql.base.config import Settings

FORMAT = 1


class ForeignState(StartError):
    """A state directory that belongs to another service."""

    def __init__(self, path: Path, found: str, wanted: str) -> None:
        super().__init__(
            f'the state directory {path} belongs to the service "{found}", not to "{wanted}"',
            hint="Choose another ksql.state.dir, or start with that ksql.service.id.",
        )


class NewerState(StartError):
    """A state directory that a later version has written."""

    def __init__(self, path: Path, found: int) -> None:
        super().__init__(
            f"the state directory {path} has format {found}, this version knows up to {FORMAT}",
            hint="Start the version that wrote it, or choose another ksql.state.dir.",
        )


@dataclass(frozen=True)
class StateDir:
    """The directory of one service, held by one process at a time."""

    root: Path
    service_id: str
    lock: FileLock

    @classmethod
    def open(cls, settings: Settings) -> StateDir:
        """Take the directory, making it if it is new.

        Raises: ForeignState, NewerState, DirectoryBusy, StartError if it cannot be written.
        """
        root = Path(settings.text("ksql.state.dir") or default_dir()).expanduser().absolute()
        service_id = settings.text("ksql.service.id")
        lock = FileLock(root / "service.lock")
        try:
            root.mkdir(parents=True, exist_ok=True)
            lock.acquire(patience_seconds=5.0)
        except OSError as error:
            raise StartError(
                f"the state directory {root} cannot be used", detail=str(error)
            ) from error
        try:
            _check(root, service_id)
        except StartError:
            lock.release()
            raise
        return cls(root, service_id, lock)

    @property
    def queries(self) -> Path:
        """Checkpoints, one directory per query id."""
        return self.root / self.service_id / "queries"

    @property
    def stores(self) -> Path:
        """Materialised tables."""
        return self.root / self.service_id / "stores"

    @property
    def aside(self) -> Path:
        """What was moved aside instead of being deleted."""
        return self.root / self.service_id / "aside"

    @property
    def broker(self) -> Path:
        """The embedded broker's data."""
        return self.root / "broker"

    def close(self) -> None:
        """Give the directory free."""
        self.lock.release()


def default_dir() -> Path:
    """Where state lies if nothing is configured."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "ksql-spark"


def _check(root: Path, service_id: str) -> None:
    marker = root / "service.json"
    if not marker.exists():
        temporary = marker.with_suffix(".new")
        temporary.write_text(json.dumps({"format": FORMAT, "service.id": service_id}))
        temporary.replace(marker)
        return
    try:
        found = json.loads(marker.read_text())
        version, owner = int(found["format"]), str(found["service.id"])
    except (KeyError, TypeError, ValueError) as error:
        raise StartError(f"{marker} is damaged", detail=str(error)) from error
    if version > FORMAT:
        raise NewerState(root, version)
    if owner != service_id:
        raise ForeignState(root, owner, service_id)
