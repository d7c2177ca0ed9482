"""The folder of a backup: made at once or not at all, and compared in whole before it is used."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ksql.app.backup import directory, form
from ksql.app.backup.errors import NoBackup
from ksql.core.error_table import TARGET_THERE
from ksql.core.files import sync_folder, write_atomically
from ksql.core.process.lock import FileLock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
            if form.digest(folder / topic.file) != topic.sha256:
                raise NoBackup(folder, f"{topic.file} has another digest than it was saved with")
        if manifest.state is not None:
            if form.digest(folder / form.LISTING) != manifest.state.sha256:
                raise NoBackup(folder, f"{form.LISTING} has another digest than it was saved with")
            directory.check(folder / form.STATE, folder / form.LISTING)
    except (OSError, ValueError) as error:
        raise NoBackup(folder, str(error)) from error
    return manifest
