"""A project on the disk: its directory, its configuration, its migration files.

Source: KLIP-42; ksqlDB's MigrationsDirectoryUtil, NewMigrationCommand, CreateMigrationCommand.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from server.cli.migrations.config import CONFIG_FILE, initial
from server.cli.migrations.failure import MigrationFailed

Say = Callable[[str], None]
MIGRATIONS = "migrations"
LARGEST_VERSION = 999_999
_OWN = 0o600  # it may get a password
_FILE = re.compile(r"V([0-9]{6})__(.+)\.sql")
_ODD_LETTERS = re.compile(r"[/\\:*?\"<>|\x00-\x1f]")


@dataclass(frozen=True, slots=True)
class MigrationFile:
    """One file: its version, above 0, and its name as people read it."""

    version: int
    name: str
    path: Path

    def read(self) -> Content:
        """Return what the file has now.

        Raises: MigrationFailed.
        """
        try:
            return Content(self.path, self.path.read_bytes())
        except OSError as error:
            raise MigrationFailed(
                f"Failed to read migration file {self.path}: {error.strerror}"
            ) from error


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes that a file had when it was read: checksum and statements are of the same ones."""

    path: Path
    raw: bytes

    def text(self) -> str:
        """Return it as text; a mark of the byte order at its head is none of it.

        Raises: MigrationFailed.
        """
        try:
            return self.raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise MigrationFailed(f"Migration file {self.path} is not UTF-8 text.") from error

    @property
    def checksum(self) -> str:
        """The checksum of its bytes."""
        return checksum(self.raw)


def checksum(content: bytes) -> str:
    """Return the MD5 digest in hexadecimal, as the reference stores it."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def files_in(directory: Path, warn: Say) -> list[MigrationFile]:
    """Return the migration files of a directory in the order of their versions.

    ``warn`` hears of files whose names say no version.
    Raises: MigrationFailed for a directory that is not there and for a version that comes twice.
    """
    if not directory.is_dir():
        raise MigrationFailed(f"'{directory}' is not a directory.")
    files: dict[int, MigrationFile] = {}
    for path in sorted(directory.iterdir()):
        named = _FILE.fullmatch(path.name)
        if named is None:
            warn(
                "Skipping file does not match expected migration file pattern "
                f"'V<six digit number>__<name>.sql': {path.name}"
            )
            continue
        version = int(named[1])
        if version == 0:
            raise MigrationFailed(f"Version number must be positive - found: {path.name}")
        if version in files:
            raise MigrationFailed(
                f"Found multiple migration files with the same version. Version: {version}. "
                f"Files: '{files[version].path}', '{path}'"
            )
        files[version] = MigrationFile(version, named[2].replace("_", " "), path)
    return [files[version] for version in sorted(files)]


def create_project(root: Path, url: str, say: Say) -> None:
    """Make the directory of a project, its configuration and its directory of migrations.

    Raises: MigrationFailed.
    """
    say(f"Creating new migrations project at {root}")
    _make_directory(root, say)
    config = root / CONFIG_FILE
    _make_file(config, say, mode=_OWN)
    say(f"Writing to config file: {config}")
    config.write_text(initial(url), encoding="utf-8")
    _make_directory(root / MIGRATIONS, say)
    say("Migrations project directory created successfully")


def create_file(directory: Path, version: int | None, description: str, say: Say) -> Path:
    """Make an empty migration file, by default of the next version.

    Raises: MigrationFailed.
    """
    if not description.strip():
        raise MigrationFailed("Description cannot be empty.")
    if _ODD_LETTERS.search(description):
        raise MigrationFailed(f"Description has letters that no file name may have: {description}")
    files = {file.version: file for file in files_in(directory, say)}
    if version is not None and version in files:
        raise MigrationFailed(
            f"Found existing migrations file for version {version}: {files[version].path}"
        )
    chosen = version if version is not None else max(files, default=0) + 1
    if not 0 < chosen <= LARGEST_VERSION:
        raise MigrationFailed(
            f"Invalid migrations file version: {chosen}. "
            f"Versions are between 1 and {LARGEST_VERSION}."
        )
    path = directory / f"V{chosen:06}__{'_'.join(description.split())}.sql"
    _make_file(path, say)
    say("Migrations file created successfully")
    return path


def _make_directory(path: Path, say: Say) -> None:
    say(f"Creating directory: {path}")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MigrationFailed(f"Failed to create directory {path}: {error.strerror}") from error


def _make_file(path: Path, say: Say, mode: int = 0o666) -> None:
    say(f"Creating file: {path}")
    try:
        path.touch(mode, exist_ok=False)
    except FileExistsError as error:
        raise MigrationFailed(f"File already exists: {path}") from error
    except OSError as error:
        raise MigrationFailed(f"Failed to create file {path}: {error.strerror}") from error
