"""``validate``: the files of applied versions are still what was applied.

Source: ksqlDB's ValidateMigrationsCommand.
"""

from __future__ import annotations

from collections.abc import Sequence

from server.cli.migrations.failure import MigrationFailed
from server.cli.migrations.metadata import NONE, Metadata
from server.cli.migrations.project import MigrationFile, Say

_PADDED = 32


def validate(metadata: Metadata, files: Sequence[MigrationFile]) -> None:
    """Compare the checksums of all versions that were applied with their files.

    Raises: MigrationFailed.
    """
    by_version = {str(file.version): file for file in files}
    version, following = metadata.latest_migrated(), ""
    while version != NONE:
        entry = metadata.version(version)
        if following:
            metadata.check_migrated(entry, following)
        file = by_version.get(version)
        if file is None:
            raise MigrationFailed(
                f"No migrations file found for version with status MIGRATED. Version: {version}"
            )
        actual = file.read().checksum
        if entry.checksum.zfill(_PADDED) != actual:
            raise MigrationFailed(
                f"Migrations file found for version {version} does not match the checksum saved "
                f"for this version.\nExpected checksum: {entry.checksum}\n"
                f"Actual checksum: {actual}\nFile name: {file.path}"
            )
        following, version = version, entry.previous


def run(metadata: Metadata, files: Sequence[MigrationFile], say: Say) -> None:
    """Validate and print the result.

    Raises: MigrationFailed.
    """
    metadata.check()
    validate(metadata, files)
    say("Successfully validated checksums for migrations that have already been applied")
