"""The archive of the classes that the broker's JVM loads: it is up in two thirds of the time.

The set-up writes it into the user's cache (``server.tools.archive``), as that of Spark's JVM. Each
Java and each class path has its own.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from ksql.core.process import ARCHIVE_NAME, cache_dir, compared, java_identity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WRITE: Final = "KSQL_BROKER_ARCHIVE"
"""Environment: the file that the broker shall write its classes to when it ends."""
_FOLDER: Final = "broker"


def archive_of(java: Path, jars: Sequence[Path]) -> Path:
    """Return the file of the archive for that Java and class path, which need not be there."""
    digest = hashlib.sha256(java_identity(java).encode())
    for jar in jars:
        digest.update(compared(jar).encode())
    return cache_dir() / _FOLDER / digest.hexdigest()[:16] / ARCHIVE_NAME


def forget_other_archives(archive: Path) -> None:
    """Remove the archives of other Javas and class paths; a JVM keeps what it has mapped."""
    for each in archive.parent.parent.glob(f"*/{ARCHIVE_NAME}"):
        if each != archive:
            each.unlink()
