"""The state directory: whose it is, and where everything lies in it.

Servers that share it have each a place of their own in it. The checkpoints are shared. Each server
that starts to lead renames them. So the server that had them before, and does not know
yet, writes where nobody looks.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.core import FOREIGN_STATE, StartError, directory, versioned_json, write_atomically
from ksql.core.process import DirectoryBusy, FileLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ksql.core import Settings, Trash

FORMAT: Final = 2
RESTORING: Final = "restore.json"
"""There as long as a restore is not done: see ``ksql.app.backup``."""
_VERSIONS: Final[versioned_json.Fields] = {
    FORMAT: frozenset({"service.id", "state.id", "kafka.cluster.id", "command.topic.id", "ended"}),
}


class OlderState(StartError):
    """A state directory of a version before format zero."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            versioned_json.before_format_zero(f"the state directory {path}"),
            hint=f"Start {versioned_json.ZERO_READER} with it once, which writes the present form.",
        )


class HalfRestored(StartError):
    """A state directory into which a backup was begun to be brought back."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"a restore into the state directory {path} was begun and not finished",
            hint="Repeat the `ksql restore` that was cut off: it begins again by itself. To start "
            f"with what is there now, remove {path / RESTORING}.",
        )


class NewerState(StartError):
    """A state directory that a later version has written."""

    def __init__(self, path: Path, version: int) -> None:
        super().__init__(
            f"the state directory {path} has format {version}, this version knows up to {FORMAT}",
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
        """Return it as it is stored."""
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
    """The directory of one service, held by one process, or shared by several servers.

    ``own`` is the place of this server alone; without sharing it is the directory itself.
    """

    root: Path
    identity: Identity
    locks: tuple[FileLock, ...]
    own: Path

    @classmethod
    def open(
        cls, settings: Settings, random_name: Callable[[], str], name: str | None = None
    ) -> StateDir:
        """Take the directory, making it if it is new; with a ``name``, share it under that one.

        Raises: FOREIGN_STATE, NewerState, HalfRestored, DirectoryBusy, StartError if it cannot be
            written.
        """
        root = directory(settings)
        service_id = settings.text("ksql.service.id")
        own = root if name is None else root / _PLACES / name
        locks = [FileLock(root / "service.lock", shared=name is not None)]
        if name is not None:
            locks.append(FileLock(own / _LOCK))
        try:
            for lock in locks:
                lock.acquire(_PATIENCE_S)
            if (root / RESTORING).exists():
                raise HalfRestored(root)
            with _alone(root):  # servers that share it may be new at the same time
                identity = _identity(root, service_id, random_name)
            (own / service_id).mkdir(exist_ok=True)
            (own / _GONE).unlink(missing_ok=True)
            state = cls(root, identity, tuple(locks), own)
            if name is None:
                state._unite()
        except OSError as error:
            _release(locks)
            raise _unusable(root, error) from error
        except BaseException:
            _release(locks)
            raise
        return state

    def expire_servers(self, trash: Trash, keep_ms: int, now_ms: int) -> None:
        """Move the places of servers aside that have been gone for that long; below 0: none.

        The first look that finds a place without its server dates it there. Its lock is held
        meanwhile, so that a server that comes back waits, and has its place or a new one.

        Raises: OSError.
        """
        if keep_ms < 0 or not self.shared:
            return
        for server_dir in sorted(self._places.iterdir()):
            if server_dir != self.own and (server_dir / _LOCK).is_file():
                self._expire(server_dir, trash, keep_ms, now_ms)

    def _expire(self, server_dir: Path, trash: Trash, keep_ms: int, now_ms: int) -> None:
        lock = FileLock(server_dir / _LOCK)
        try:
            lock.acquire()
        except DirectoryBusy:
            return
        try:
            gone = server_dir / _GONE
            since = gone.read_bytes() if gone.exists() else b""
            if not since.isdigit():
                gone.write_text(str(now_ms), encoding="ascii")
            elif now_ms - int(since) > keep_ms:
                trash.take(server_dir, "server", "its server has been gone for long")
        finally:
            lock.release()

    @property
    def _places(self) -> Path:
        return self.root / _PLACES

    @property
    def shared(self) -> bool:
        """Whether other servers may use the directory at the same time."""
        return self.own != self.root

    @property
    def _home(self) -> Path:
        return self.root / self.identity.service_id

    @property
    def queries(self) -> Path:
        """Checkpoints, one directory per query id; where the last leader has them."""
        return max(self._generations(), default=(0, self._home / _QUERIES))[1]

    def claim(self, confirm: Callable[[], object]) -> Path:
        """Rename the checkpoints' directory, so that no other server finds it; return it.

        ``confirm`` raises if this server does not lead. As it is asked between the look at
        the names and the renaming, a server that was replaced meanwhile renames nothing.

        Raises: StartError, and what ``confirm`` does.
        """
        while True:
            number, checkpoints = max(self._generations(), default=(0, None))
            confirm()
            target = self._home / f"{_QUERIES}-{number + 1}"
            try:
                if checkpoints is None:
                    target.mkdir()
                else:
                    checkpoints.rename(target)
            except FileNotFoundError:  # by the server that this one has replaced
                continue
            except OSError as error:
                raise _unusable(self.root, error) from error
            return target

    def reread_identity(self) -> None:
        """Read whose state it is once more: another server may have noted it meanwhile.

        Raises: StartError.
        """
        text = (self.root / _MARKER).read_text(encoding="utf-8")
        self.identity = _parsed(self.root / _MARKER, text, self.identity.service_id)

    def orphaned_checkpoints(self) -> list[Path]:
        """Return former directories of the checkpoints: what servers wrote after their end."""
        return [path for _, path in sorted(self._generations())[:-1]]

    def _generations(self) -> list[tuple[int, Path]]:
        """Return the directories that hold or held the checkpoints, with their numbers."""
        generations = []
        for path in self._home.glob(f"{_QUERIES}*"):
            number = path.name.removeprefix(_QUERIES).removeprefix("-") or "0"
            if number.isdecimal() and path.is_dir():
                generations.append((int(number), path))
        return generations

    def _unite(self) -> None:
        """Take back the plain name of the checkpoints when the directory is shared no more."""
        generations = self._generations()
        if len(generations) == 1 and generations[0][0]:  # of several, the number says which counts
            generations[0][1].rename(self._home / _QUERIES)

    @property
    def carried_out(self) -> Path:
        """Where it is noted how far the commands have been carried out."""
        return self._home / "carried_out.json"

    @property
    def stores(self) -> Path:
        """Materialised tables."""
        return self.own / self.identity.service_id / "stores"

    @property
    def trash(self) -> Path:
        """Return the directory of entries that were moved aside instead of being deleted."""
        return self._home / "aside"

    def stores_of(self) -> str:
        """Return the id of the command topic that this server's stores were filled under."""
        try:
            _, fields = versioned_json.read(
                self._stores_note.read_text(encoding="utf-8"), _NOTE_VERSIONS
            )
            return versioned_json.text_of(fields, "command.topic.id")
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, versioned_json.NewerVersion) as error:
            raise _unusable(self._stores_note, error) from error

    def stores_belong_to(self, command_topic_id: str) -> None:
        """Note that id.

        Raises: StartError.
        """
        text = json.dumps({"version": 1, "command.topic.id": command_topic_id})
        try:
            write_atomically(self._stores_note, text)
        except OSError as error:
            raise _unusable(self.root, error) from error

    @property
    def _stores_note(self) -> Path:
        return self.own / self.identity.service_id / "stores.json"

    @property
    def lease(self) -> Path:
        """Where tasks see whether they may write."""
        return self.own / self.identity.service_id / _LEASE

    def lease_of(self, own: str) -> bytes:
        """Return the file with the right of another server, whose own place has that path there."""
        name = Path(own).name
        try:
            return (self._places / name / self.identity.service_id / _LEASE).read_bytes()
        except OSError:
            return b""

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
        """Remember that the service is terminated: the next start begins with nothing.

        Raises: StartError.
        """
        self._remember(replace(self.identity, ended=True))

    def close(self) -> None:
        _release(self.locks)

    def _remember(self, identity: Identity) -> None:
        if identity == self.identity:
            return
        try:
            write_atomically(self.root / _MARKER, identity.text())
        except OSError as error:
            raise _unusable(self.root, error) from error
        self.identity = identity


_MARKER = "service.json"
_NOTE_VERSIONS: Final[versioned_json.Fields] = {1: frozenset({"command.topic.id"})}
_QUERIES = "queries"
_PLACES = "servers"
_LEASE = "lease.json"
_LOCK = "server.lock"
_GONE = "gone"
_PATIENCE_S = 5.0


def identity_of(root: Path, service_id: str) -> Identity | None:
    """Return whose state it is; None if nobody's. The caller holds the directory.

    Raises: FOREIGN_STATE, NewerState, StartError, OSError.
    """
    marker = root / _MARKER
    if not marker.exists():
        return None
    return _parsed(marker, marker.read_text(encoding="utf-8"), service_id)


def write_identity(root: Path, identity: Identity) -> None:
    """Write whose state it is. The caller holds the directory.

    Raises: OSError.
    """
    write_atomically(root / _MARKER, identity.text())


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    lock = FileLock(root / "identity.lock")
    lock.acquire(_PATIENCE_S)
    try:
        yield
    finally:
        lock.release()


def _release(locks: Iterable[FileLock]) -> None:
    for lock in locks:
        lock.release()


def _identity(root: Path, service_id: str, random_name: Callable[[], str]) -> Identity:
    """Read the directory's identity; mark a directory that is new."""
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
            write_atomically(marker, identity.text())
    except OSError as error:
        raise _unusable(root, error) from error
    return identity


def _parsed(marker: Path, text: str, service_id: str) -> Identity:
    try:
        fields = versioned_json.parse(text)
        version = versioned_json.version_of(fields, FORMAT, "format", FORMAT)
        owner = versioned_json.text_of(fields, "service.id")
        if owner != service_id:
            raise FOREIGN_STATE(path=marker.parent, owner=owner, service_id=service_id)
        versioned_json.check_fields(fields, _VERSIONS[version] | {"format"}, version)
        return Identity(
            service_id=owner,
            state_id=versioned_json.text_of(fields, "state.id"),
            cluster_id=versioned_json.text_of(fields, "kafka.cluster.id"),
            command_topic_id=versioned_json.text_of(fields, "command.topic.id"),
            ended=bool(fields["ended"]),
        )
    except versioned_json.NewerVersion as newer:
        raise NewerState(marker.parent, newer.version) from newer
    except versioned_json.OlderVersion as older:
        raise OlderState(marker.parent) from older
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
