"""Writes and verifies a backup folder; decides which files of the state directory go into it.

Nobody may use the state directory while it is copied. The folder is there in whole or not at all,
and is compared in whole before it is used.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ksql.app.backup import form
from ksql.app.backup.form import NoBackup
from ksql.app.state import RESTORING
from ksql.core import TARGET_THERE, sync_folder, write_atomically
from ksql.core.process import FileLock, sha256

IN_WORK: Final = ".restoring"
REPLACED: Final = "replaced-"
_WRITTEN_AGAIN: Final = frozenset({"lease.json", RESTORING, IN_WORK})
"""What a start makes again, or a restore."""
_SCRATCH: Final = frozenset({"spark", "logs"})
"""Of each server, next to its state."""
_PLACES: Final = "servers"


def is_left(relative: Path) -> bool:
    """Return whether a part of the state directory is not saved: nothing is lost without it."""
    name, parents = relative.name, relative.parts[:-1]
    own = not parents or (parents[0] == _PLACES and len(parents) == 2)  # the directory of a server
    if name in _WRITTEN_AGAIN or (name.endswith(".lock") and relative.parts[0] != "broker"):
        return True
    return own and (name in _SCRATCH or name.startswith(REPLACED))


def save(root: Path, target: Path, listing: Path) -> tuple[int, int]:
    """Copy the directory and list the digests of its files; return their number and bytes.

    Raises: OSError.
    """
    shutil.copytree(root, target, symlinks=True, ignore=_leaving(root))
    files = sorted(file for file in target.rglob("*") if _is_plain(file))
    with listing.open("w", encoding="utf-8") as out:
        for file in files:
            name = file.relative_to(target).as_posix()
            if "\n" in name:
                raise OSError(f"{name!r} has a name of several lines")
            out.write(f"{sha256(file)}  {name}\n")
    return len(files), sum(file.stat().st_size for file in files)


def check(folder: Path, listing: Path) -> None:
    """Check that the files of a copy are those of the list.

    Raises: OSError, ValueError.
    """
    digests = dict(_listed(listing.read_text(encoding="utf-8").splitlines()))
    there = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if _is_plain(file)}
    if there != digests.keys():
        odd = min(there ^ digests.keys())
        raise ValueError(f"{odd} is {'not in' if odd in there else 'missing from'} the saved state")
    for name, known in digests.items():
        if sha256(folder / name) != known:
            raise ValueError(f"{name} has another digest than it was saved with")


def held(root: Path) -> list[Path]:
    """Return what lies in a state directory and is somebody's state."""
    if not root.is_dir():
        return []
    return [entry for entry in sorted(root.iterdir()) if not is_left(entry.relative_to(root))]


def stage(source: Path, root: Path, listing: Path) -> Path:
    """Copy a saved state next to the one that it will replace; return where it is.

    Raises: OSError, ValueError.
    """
    staging = root / IN_WORK
    shutil.rmtree(staging, ignore_errors=True)
    shutil.copytree(source, staging, symlinks=True)
    check(staging, listing)
    return staging


def put(staging: Path, root: Path, stamp: str) -> Path | None:
    """Have what was staged as the state; return where that is now which it has replaced.

    Raises: OSError.
    """
    former = held(root)
    aside = root / f"{REPLACED}{stamp}" if former else None
    if aside is not None:
        aside.mkdir(exist_ok=True)
        for entry in former:
            entry.rename(aside / entry.name)
    for entry in sorted(staging.iterdir()):
        entry.rename(root / entry.name)
    staging.rmdir()
    return aside


def _leaving(root: Path) -> Callable[[str, list[str]], set[str]]:
    def ignore(folder: str, names: Iterable[str]) -> set[str]:
        relative = Path(folder).relative_to(root)
        return {name for name in names if is_left(relative / name)}

    return ignore


def _is_plain(file: Path) -> bool:
    return file.is_file() and not file.is_symlink()


def _listed(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        known, gap, name = line.partition("  ")
        if not gap:
            raise ValueError(f"{line!r:.80} is no line of the list")
        yield name, known


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Give a folder to fill, which becomes the target when the block ends well.

    What an earlier try has left there is removed first.
    Raises: TARGET_THERE, DirectoryBusy, OSError.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise TARGET_THERE(target=target)
    if not target.parent.is_dir():
        raise NotADirectoryError(f"{target.parent} is no directory")
    part = target.with_name(f".{target.name}.part")
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    with lock:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            yield part
            os.sync()  # all of it lasts before its name does
            part.rename(target)
            sync_folder(target.parent)
        finally:
            shutil.rmtree(part, ignore_errors=True)
            lock.path.unlink(missing_ok=True)


def finish(part: Path, manifest: form.Manifest) -> None:
    """Write the manifest, as the last file.

    Raises: OSError.
    """
    write_atomically(part / form.MANIFEST, manifest.text())


def checked(folder: Path) -> form.Manifest:
    """Return the manifest of a backup all of whose files have the digests that it names.

    Raises: NoBackup, NEWER_BACKUP.
    """
    manifest = form.read_manifest(folder)
    try:
        for topic in manifest.topics:
            if sha256(folder / topic.file) != topic.sha256:
                raise NoBackup(folder, f"{topic.file} has another digest than it was saved with")
        if manifest.state is not None:
            if sha256(folder / form.LISTING) != manifest.state.sha256:
                raise NoBackup(folder, f"{form.LISTING} has another digest than it was saved with")
            check(folder / form.STATE, folder / form.LISTING)
    except (OSError, ValueError) as error:
        raise NoBackup(folder, str(error)) from error
    return manifest
