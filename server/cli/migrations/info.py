"""``info``: the current version, and the state of each file.

Source: ksqlDB's MigrationInfoCommand.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from server.cli.grid import Grid, clean
from server.cli.migrations.metadata import NO_ERROR, Metadata, VersionRow
from server.cli.migrations.project import MigrationFile
from server.cli.screen import Screen

HEADERS = (
    "Version",
    "Name",
    "State",
    "Previous Version",
    "Started On",
    "Completed On",
    "Error Reason",
)


def show(metadata: Metadata, files: Sequence[MigrationFile], screen: Screen) -> None:
    """Print the current version and a table of all files.

    Raises: MigrationFailed.
    """
    metadata.check()
    screen.lines([f"Current migration version: {metadata.current_version()}"])
    if not files:
        screen.lines(["No migrations files found"])
        return
    known = metadata.entries(str(file.version) for file in files)
    screen.show(Grid(HEADERS, [_row(file, known.get(str(file.version))) for file in files]))


def _row(file: MigrationFile, entry: VersionRow | None) -> list[str]:
    if entry is None:
        return [str(file.version), file.name, "PENDING", *[NO_ERROR] * 4]
    return [
        str(file.version),
        clean(entry.name),
        entry.state,
        entry.previous,
        moment(entry.started_on),
        moment(entry.completed_on),
        clean(entry.error_reason),
    ]


def moment(millis: str) -> str:
    """Return a time as people read it, in UTC."""
    if not millis.isdecimal():
        return millis or NO_ERROR
    time = dt.datetime.fromtimestamp(int(millis) / 1000, dt.UTC)
    return f"{time:%Y-%m-%d %H:%M:%S}.{int(millis) % 1000:03} UTC"
