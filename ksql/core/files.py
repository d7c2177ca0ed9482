"""A server's files: paths, atomic small files, files that are read again, the trash directory.

A small file is whole or not there, also after a crash or a loss of power.

Unknown state goes into the trash directory, whose entries are dated, listed, and removed after a
time.

Each entry is a directory ``<time>-<number>-<name>`` with ``about.json`` and what was moved.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import re
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from ksql.core.errors import KsqlError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.core.config import Settings


Content = TypeVar("Content")

_log = logging.getLogger(__name__)


def write_atomically(file: Path, text: str) -> None:
    """Put the text in the file's place at once; the folder must be there.

    Raises: OSError.
    """
    temporary = file.with_name(f".{file.name}.new")
    with temporary.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(file)
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last.

    Raises: OSError.
    """
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class WatchedFiles(Generic[Content]):
    """The content of an operator's files, which are read again once they have changed.

    Files that then cannot be used leave the content as it is, which is logged once. They are tried
    again: what is wrong may be in another place.
    """

    def __init__(
        self,
        what: str,
        read: Callable[[Callable[[str | Path], None]], Content],
        clock: Callable[[], float] = time.monotonic,
        *,
        look_s: float = 1.0,
        counts: Callable[[Content], Mapping[str, int]] = lambda _content: {},
    ) -> None:
        """Read them.

        ``what`` begins the names of events, which have the ``counts``. ``read`` calls what it is
        given with each file before it reads that. They are looked at each ``look_s`` at most.

        Raises: what ``read`` raises.
        """
        self._what, self._read, self._counts = what, read, counts
        self._clock, self._look_s = clock, look_s
        self._looked_s = clock()
        self._problem = ""
        self._content = self._load()

    def current(self) -> Content:
        """Return what they say now."""
        now_s = self._clock()
        if now_s - self._looked_s >= self._look_s:
            self._looked_s = now_s
            changed = any(_mark_of(path) != mark for path, mark in self._seen.items())
            if changed or self._problem:
                self.read_again()
        return self._content

    def read_again(self) -> None:
        """Read them, whether they seem to have changed or not."""
        self._looked_s = self._clock()
        try:
            self._content = self._load()
        except KsqlError as error:
            former, self._problem = self._problem, error.text()
            if self._problem != former:
                _log.error(f"{self._what}_not_read", extra={"reason": self._problem})
            return
        self._problem = ""
        _log.info(f"{self._what}_read", extra=dict(self._counts(self._content)))

    def _load(self) -> Content:
        seen: dict[str | Path, tuple[int, int, int] | None] = {}
        self._seen = seen
        return self._read(lambda path: seen.update({path: _mark_of(path)}))


def _mark_of(path: str | Path) -> tuple[int, int, int] | None:
    """Return what changes with a file's content; None without one."""
    try:
        stat = Path(path).stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


FORMAT: Final = 1
_ABOUT: Final = "about.json"
_STAMP: Final = "%Y%m%dT%H%M%SZ"
_LONGEST_NAME: Final = 120
"""Of what was moved, in its entry: file systems have a bound for names."""
_ENTRY: Final = re.compile(r"(\d{8}T\d{6}Z)-.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashEntry:
    """Something that was moved aside: where it was, why and when, and where it is now."""

    entry: Path
    what: str
    origin: str
    reason: str
    when_ms: int

    @property
    def name(self) -> str:
        return self.entry.name

    def size_bytes(self) -> int:
        """Return how much room it takes."""
        files = (file for file in self.entry.rglob("*") if file.is_file())
        return sum(file.lstat().st_size for file in files)


class Trash:
    """The directory of what was moved aside; ``now_ms`` is the clock."""

    def __init__(self, directory: Path, now_ms: Callable[[], int]) -> None:
        self._directory = directory
        self._now_ms = now_ms

    def take(self, path: Path, what: str, reason: str) -> TrashEntry:
        """Move a directory here.

        Raises: OSError.
        """
        when_ms = self._now_ms()
        stamp = datetime.fromtimestamp(when_ms / 1000, UTC).strftime(_STAMP)
        number, name = 0, _shortened(path.name)
        while (entry := self._directory / f"{stamp}-{number}-{name}").exists():
            number += 1
        moved = TrashEntry(entry=entry, what=what, origin=str(path), reason=reason, when_ms=when_ms)
        entry.mkdir(parents=True)
        about = {"format": FORMAT, "what": what, "from": moved.origin, "reason": reason}
        try:
            write_atomically(
                entry / _ABOUT, json.dumps({**about, "when.ms": when_ms}, indent=1) + "\n"
            )
            _move(path, entry / path.name)
        except OSError:
            if not (entry / path.name).exists():  # else a part of it is here, and maybe only here
                shutil.rmtree(entry, ignore_errors=True)
            raise
        _log.warning(
            "moved_aside",
            extra={"what": what, "origin": str(path), "entry": str(entry), "reason": reason},
        )
        return moved

    def entries(self) -> list[TrashEntry]:
        """Return all that lies here, the oldest first."""
        if not self._directory.is_dir():
            return []
        moves = [_read(path) for path in sorted(self._directory.iterdir()) if path.is_dir()]
        return [moved for moved in moves if moved is not None]

    def remove(self, moved: TrashEntry) -> None:
        """Delete it for good.

        Raises: OSError.
        """
        shutil.rmtree(moved.entry)
        _log.warning("aside_removed", extra={"entry": str(moved.entry), "origin": moved.origin})

    def expire(self, keep_ms: int) -> list[TrashEntry]:
        """Delete the entries that are older than that; log those that cannot be deleted.

        Below 0: nothing is deleted.
        """
        gone: list[TrashEntry] = []
        if keep_ms < 0:
            return gone
        for moved in self.entries():
            if self._now_ms() - moved.when_ms <= keep_ms:
                continue
            try:
                self.remove(moved)
            except OSError as problem:
                _log.warning("aside_left", extra={"entry": moved.name, "reason": str(problem)})
            else:
                gone.append(moved)
        return gone


def _move(source: Path, target: Path) -> None:
    """Move a directory at once, or not at all; only to another file system it is copied."""
    try:
        source.rename(target)
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
        shutil.move(source, target)


def _shortened(name: str) -> str:
    """Return a long name with its end replaced by a hash of the whole: two names remain two."""
    data = os.fsencode(name)
    if len(data) <= _LONGEST_NAME:
        return name
    mark = hashlib.sha256(data).hexdigest()[:16]
    return f"{data[: _LONGEST_NAME - 17].decode(errors='ignore')}-{mark}"


def _read(entry: Path) -> TrashEntry | None:
    """Return an entry; what is none of ours is left alone."""
    stamp = _ENTRY.fullmatch(entry.name)
    if stamp is None:
        return None
    try:
        about = json.loads((entry / _ABOUT).read_text(encoding="utf-8"))
        return TrashEntry(
            entry=entry,
            what=str(about["what"]),
            origin=str(about["from"]),
            reason=str(about["reason"]),
            when_ms=about["when.ms"],
        )
    except (OSError, KeyError, TypeError, ValueError):
        when = datetime.strptime(stamp[1], _STAMP).replace(tzinfo=UTC)
        return TrashEntry(
            entry=entry,
            what="unknown",
            origin="",
            reason="its description is lost",
            when_ms=int(when.timestamp() * 1000),
        )


def directory(settings: Settings) -> Path:
    """Return where the state lies."""
    return Path(settings.text("ksql.state.dir") or default_dir()).expanduser().absolute()


def default_dir() -> Path:
    """Return where state lies if nothing is configured."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "ksql-spark"
