"""The archive of a JVM's classes: the facts that Java compares before it takes one.

Java maps the classes of a program from such a file. It need not read and check them then. Class
path and Java must be those that wrote it; else the JVM starts as if there were none.

Source: JEP 350, Dynamic CDS Archives.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

ARCHIVE_NAME: Final = "classes.jsa"
_QUIET: Final = "-Xlog:cds*=off"  # an archive that does not fit is no trouble


def archive_options(archive: Path, written: str | None) -> list[str]:
    """Return the JVM's options: to write an archive to that file, else to use one if it exists."""
    if written:
        return [_QUIET, f"-XX:ArchiveClassesAtExit={written}"]
    return [_QUIET, f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def compared(jar: os.PathLike[str]) -> str:
    """Return a line with what Java compares of a jar: a path, or an entry of a folder.

    Source: HotSpot, SharedClassPathEntry::validate.
    """
    seen = os.stat(jar)  # noqa: PTH116 entries of a folder as well as paths
    return f"{os.fspath(jar)}\t{seen.st_size}\t{int(seen.st_mtime)}\n"


def java_identity(java: Path | None = None) -> str:
    """Return the place of a Java, by default of the one in use, and its release file if any."""
    home = os.environ.get("JAVA_HOME")
    in_use = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    path = (java or in_use).resolve()
    release = path.parent.parent / "release"
    return f"{path}\n{release.read_text('utf-8') if release.is_file() else ''}"
