"""The archive of the classes that Spark's JVM loads, which spares it half of its start.

Until its first batch is done the JVM reads, checks and links some 20,000 classes. Java can map them
from a file instead, which a JVM writes when it ends. It accepts the file only with the very class
path and Java that wrote it, else it starts as if there were none. So Spark's home and the jars lie
in one place for each installation, below the user's cache (``JvmHome``). PySpark installed again in
the same place is another installation. The set-up writes the archive (``server.tools.archive``); it
is used for ``local`` masters only.

Source: JEP 350, Dynamic CDS Archives.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ksql.core.process import (
    ARCHIVE_NAME,
    archive_options,
    cache_dir,
    compared,
    java_identity,
)
from ksql.spark.session.source import SOURCE_JAR

WRITE: Final = "KSQL_SPARK_ARCHIVE"
"""Environment: the file that the JVM shall write its classes to when it ends."""
_FOLDER = "spark"


@dataclass(frozen=True, slots=True)
class JvmHome:
    """Where Spark's home lies, and what its JVM has on its class path besides."""

    folder: Path
    jars: Sequence[Path]

    @property
    def home(self) -> Path:
        """Return Spark's home: one without the zipped PySpark.

        So workers import the installed one, whose bytecode is there: 0.17 s of CPU instead of
        0.83 s. Every stateful query starts a worker of its own.
        Source: PythonUtils.sparkPythonPath.
        """
        return self.folder / "home"

    @property
    def archive(self) -> Path:
        """Return the file of the archive, which need not be there."""
        return self.folder / ARCHIVE_NAME

    @property
    def class_path(self) -> tuple[Path, ...]:
        """Return the jars next to Spark's own."""
        return (*self.jars, SOURCE_JAR)

    def options(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return the JVM's options: to write the archive if that is asked for, else to use it."""
        options = archive_options(self.archive, environ.get(WRITE))
        return tuple(f'"{option}"' for option in options)


def shared_stand(jars: Sequence[Path]) -> JvmHome:
    """Return the home of this installation: of its PySpark, its jars, our classes and its Java."""
    digest = hashlib.sha256(repr((str(_pyspark()), version("pyspark"))).encode())
    with os.scandir(_pyspark() / "jars") as entries:  # in the folder's order, as Java takes them
        for jar in (*entries, *jars, SOURCE_JAR):
            digest.update(compared(jar).encode())
    for code in (SOURCE_JAR.read_bytes(), java_identity().encode()):
        digest.update(code)
    return JvmHome(cache_dir() / _FOLDER / digest.hexdigest()[:16], jars)


def prepared_stand(jars: Sequence[Path], scratch: Path) -> JvmHome:
    """Return a home with all in place; in the scratch folder if the cache is closed to us."""
    stand = shared_stand(jars)
    try:
        _prepare(stand)
    except OSError:
        stand = JvmHome(scratch / "stand", jars)
        _prepare(stand)
    return stand


def forget_others(stand: JvmHome) -> None:
    """Remove the archives of installations that are gone, and former ones of this installation."""
    for archive in stand.folder.parent.glob(f"*/{stand.archive.name}"):
        used = (archive.parent / "home" / "jars").resolve()
        if archive != stand.archive and (
            not used.exists() or used == (_pyspark() / "jars").resolve()
        ):
            archive.unlink()  # a JVM that runs keeps what it has mapped


def _prepare(stand: JvmHome) -> None:
    stand.home.mkdir(parents=True, exist_ok=True)
    for part in ("bin", "jars"):
        with contextlib.suppress(FileExistsError):
            (stand.home / part).symlink_to(_pyspark() / part)


def _pyspark() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None  # noqa: S101 it is one of our packages
    assert spec.origin is not None  # noqa: S101 and no namespace
    return Path(spec.origin).parent
