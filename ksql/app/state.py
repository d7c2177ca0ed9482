"""The state directory: whose it is, and where everything lies in it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.base import stored
from ksql.base.errors import StartError
from ksql.base.files import write_whole
from ksql.base.lock import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.base.config import Settings

FORMAT: Final = 2
_VERSIONS: Final[stored.Fields] = {
    1: frozenset({"service.id"}),
    2: frozenset({"service.id", "state.id", "kafka.cluster.id", "command.topic.id", "ended"}),
}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whose state it is: of which service, on which Kafka cluster, by which command topic.

    Attributes:
        state_id: The directory's own name, wherever it lies.
        cluster_id: Kafka's; empty before the first complete start.
        command_topic_id: Kafka's id of the command topic; empty if it is not known.
        ended: The service was terminated: its command topic is gone on purpose.
    """

    service_id: str
    state_id: str
    cluster_id: str = ""
    command_topic_id: str = ""
    ended: bool = False

    def text(self) -> str:
        """As it is stored."""
        return json.dumps(
            {
                "format": FORMAT,
                "service.id": self.service_id,
                "state.id": self.state_id,
                "kafka.cluster.id": self.cluster_id,
                "command.topic.id": self.command_topic_id,
                "ended": self.ended,
            }
        )


@dataclass
class StateDir:
    """The directory of one service, held by one process at a time."""

    root: Path
    identity: Identity
    lock: FileLock

    @classmethod
    def open(cls, settings: Settings, random_name: Callable[[], str]) -> StateDir:
        """Take the directory, making it if it is new.

        Raises: ForeignState, NewerState, DirectoryBusy, StartError if it cannot be written.
        """
        root = directory(settings)
        service_id = settings.text("ksql.service.id")
        lock = FileLock(root / "service.lock")
        try:
            root.mkdir(parents=True, exist_ok=True)
            lock.acquire(patience_seconds=5.0)
        except OSError as error:
            raise _unusable(root, error) from error
        try:
            return cls(root, _identity(root, service_id, random_name), lock)
        except BaseException:
            lock.release()
            raise

    @property
    def _home(self) -> Path:
        return self.root / self.identity.service_id

    @property
    def queries(self) -> Path:
        """Checkpoints, one directory per query id."""
        return self._home / "queries"

    @property
    def stores(self) -> Path:
        """Materialised tables."""
        return self._home / "stores"

    @property
    def aside(self) -> Path:
        """Return the directory of entries that were moved aside instead of being deleted."""
        return self._home / "aside"

    @property
    def lease(self) -> Path:
        """Where tasks see whether they may write."""
        return self._home / "lease.json"

    @property
    def broker(self) -> Path:
        """The embedded broker's data."""
        return self.root / "broker"

    def belongs_to(self, cluster_id: str, command_topic_id: str) -> None:
        """Remember the cluster and the command topic of a start that went well.

        Raises: StartError.
        """
        self._remember(
            replace(
                self.identity,
                cluster_id=cluster_id,
                command_topic_id=command_topic_id,
                ended=False,
            )
        )

    def end(self) -> None:
        """Remember that the service is terminated: the next start begins anew.

        Raises: StartError.
        """
        self._remember(replace(self.identity, ended=True))

    def close(self) -> None:
        """Give the directory free."""
        self.lock.release()

    def _remember(self, identity: Identity) -> None:
        if identity == self.identity:
            return
        try:
            write_whole(self.root / _MARKER, identity.text())
        except OSError as error:
            raise _unusable(self.root, error) from error
        self.identity = identity


_MARKER = "service.json"


def directory(settings: Settings) -> Path:
    """Return where the state lies."""
    return Path(settings.text("ksql.state.dir") or default_dir()).expanduser().absolute()


def default_dir() -> Path:
    """Return where state lies if nothing is configured."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "ksql-spark"


def _identity(root: Path, service_id: str, random_name: Callable[[], str]) -> Identity:
    """Read the directory's identity; mark a directory that is new or of an earlier format."""
    marker = root / _MARKER
    try:
        text = marker.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = None
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(root, error) from error
    identity = (
        Identity(service_id=service_id, state_id="")
        if text is None
        else _parsed(marker, text, service_id)
    )
    try:
        (root / service_id).mkdir(exist_ok=True)
        if not identity.state_id:
            identity = replace(identity, state_id=random_name())
            write_whole(marker, identity.text())
    except OSError as error:
        raise _unusable(root, error) from error
    return identity


def _parsed(marker: Path, text: str, service_id: str) -> Identity:
    try:
        found = stored.parse(text)
        version = stored.version_of(found, FORMAT, "format")
        owner = stored.text_of(found, "service.id")
        if owner != service_id:
            raise ForeignState(marker.parent, owner, service_id)
        stored.check_fields(found, _VERSIONS[version] | {"format"}, version)
        if version < FORMAT:
            return Identity(service_id=owner, state_id="")
        return Identity(
            service_id=owner,
            state_id=stored.text_of(found, "state.id"),
            cluster_id=stored.text_of(found, "kafka.cluster.id"),
            command_topic_id=stored.text_of(found, "command.topic.id"),
            ended=bool(found["ended"]),
        )
    except stored.NewerVersion as newer:
        raise NewerState(marker.parent, newer.found) from newer
    except ValueError as error:
        raise StartError(
            f"{marker} is damaged",
            detail=str(error),
            hint="Bring it back from a copy, or choose another ksql.state.dir.",
        ) from error


def _unusable(root: Path, error: Exception) -> StartError:
    return StartError(
        f"the state directory {root} cannot be used",
        detail=str(error),
        hint="Look at its disk and at who may write there, or choose another ksql.state.dir.",
    )
