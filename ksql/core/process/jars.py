"""The jars of Kafka, Kafka Connect and Spark's connector: which they are and where they lie.

``jars.toml`` names each by its Maven coordinate and checksum. The set-up fetches them; the
service only looks them up. Standard library only: the set-up imports it before anything is there.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ksql.core.error_table import JARS_MISSING

JarSet = Literal["broker", "spark", "connect", "connect-file"]
"""``connect`` is what its worker needs beyond the broker's, ``connect-file`` a plugin of it."""

LOCK = Path(__file__).with_name("jars.toml")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Jar:
    """One locked file: ``group:artifact:version``, its SHA-256 and its size."""

    coordinate: str
    sha256: str
    size_bytes: int
    which: JarSet

    @property
    def file_name(self) -> str:
        """The name under which it is kept: ``artifact-version.jar``."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"

    @property
    def path(self) -> str:
        """The file's path in a Maven repository."""
        group, artifact, version = self.coordinate.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.file_name}"


def locked(lock: Path = LOCK) -> tuple[Jar, ...]:
    """Return every jar of the lock file, in class path order."""
    rows = tomllib.loads(lock.read_text(encoding="utf-8"))["jar"]
    return tuple(Jar(row["coordinate"], row["sha256"], row["bytes"], row["set"]) for row in rows)


def cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Return this user's cache: ``KSQL_CACHE_DIR``, else ``ksql-spark`` in the XDG cache folder."""
    env = os.environ if environ is None else environ
    if own := env.get("KSQL_CACHE_DIR"):
        return Path(own).expanduser().absolute()
    base = env.get("XDG_CACHE_HOME", "")
    root = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return root / "ksql-spark"


def jar_dir() -> Path:
    """Return the folder that holds the fetched jars of all sets."""
    return cache_dir() / "jars"


def jar_files(which: JarSet) -> list[Path]:
    """Return the files of a set, in class path order.

    Only presence and size are looked at here; the checksum was verified before a file got its name.

    Raises: JARS_MISSING when the set-up has not fetched them all.
    """
    folder = jar_dir()
    chosen = [jar for jar in locked() if jar.which == which]
    missing = sum(not present(jar, folder) for jar in chosen)
    if missing:
        raise JARS_MISSING(which=which, missing=missing, folder=folder)
    return [folder / jar.file_name for jar in chosen]


def present(jar: Jar, folder: Path) -> bool:
    """Return whether the jar lies there in full."""
    try:
        return (folder / jar.file_name).stat().st_size == jar.size_bytes
    except OSError:
        return False


def sha256(path: Path) -> str:
    """Return the file's SHA-256 in hexadecimal.

    Raises: OSError.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
