"""Keeps two ``apply`` apart: the first claim in the metadata's stream counts until it is released.

Claims are events of the stream, so its one partition orders them, and all commands that read them
come to the same answer. An ``apply`` that was killed leaves its claim, which ``--take-over``
replaces. ksqlDB's tool marks a version as RUNNING, and lets a second one work at the same time.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime

from server.cli.migrations.failure import SERVER_ERRORS, MigrationFailed, reason_of
from server.cli.migrations.metadata import NONE, Metadata, VersionRow
from server.cli.migrations.project import Say

CLAIM = "CURRENT/apply"
"""The key of the events of claims; the reference tool looks at no such key."""


class ApplyLock:
    """The right to apply files, of one command."""

    def __init__(self, metadata: Metadata, say: Say, now_ms: Callable[[], int]) -> None:
        self._metadata = metadata
        self._say = say
        self._now_ms = now_ms
        self._claim = VersionRow(
            version_key=CLAIM,
            version=CLAIM,
            name=f"process {os.getpid()} on {socket.gethostname()}",
            state="RUNNING",
            checksum=uuid.uuid4().hex,
            started_on="",
            completed_on="",
            previous=NONE,
        )

    def take(self, *, over: bool) -> None:
        """Get the right; ``over``: from a command that is not at work any more.

        Raises: MigrationFailed if another one has it.
        """
        other = self._holder()
        if other is not None and not over:
            raise _LockHeld(other)
        if other is not None:
            self._say(f"Taking over from {_shown(other)}.")
        previous = NONE if other is None else other.checksum
        self._claim = replace(self._claim, previous=previous, started_on=str(self._now_ms()))
        self._write(self._claim)
        self.check()

    def check(self) -> None:
        """Check that this command still has the right.

        Raises: MigrationFailed if another one has it.
        """
        holder = self._holder()
        if not self._is_mine(holder):
            raise _LockHeld(holder)

    def is_lost(self) -> bool:
        """Return whether another command has taken the right; False if that is not known."""
        try:
            return not self._is_mine(self._holder())
        except MigrationFailed:
            return False

    def _is_mine(self, holder: VersionRow | None) -> bool:
        return holder is not None and holder.checksum == self._claim.checksum

    def release(self) -> None:
        """Give the right back; if the server is away, the next command must take over."""
        ended = replace(self._claim, state="MIGRATED", completed_on=str(self._now_ms()))
        try:
            self._write(ended)
        except MigrationFailed as failed:
            self._say(f"{failed}\nThe next apply needs --take-over.")

    def _holder(self) -> VersionRow | None:
        return holder_of(self._metadata.events(CLAIM))

    def _write(self, entry: VersionRow) -> None:
        try:
            self._metadata.write(entry, CLAIM)
        except SERVER_ERRORS as error:
            raise MigrationFailed(f"Failed to write the claim: {reason_of(error)}") from error


def holder_of(events: Iterable[VersionRow]) -> VersionRow | None:
    """Return the claim that counts after these events, in their order; None if none does."""
    holder: VersionRow | None = None
    for event in events:
        if event.state == "RUNNING":
            if holder is None or event.previous == holder.checksum:
                holder = event
        elif holder is not None and event.checksum == holder.checksum:
            holder = None
    return holder


class _LockHeld(MigrationFailed):
    """Another ``apply`` is at work, or was killed."""

    def __init__(self, holder: VersionRow | None) -> None:
        who = "Another apply" if holder is None else f"Another apply ({_shown(holder)})"
        super().__init__(
            f"{who} is at work: only one may be. If it was killed, run apply with --take-over."
        )


def _shown(claim: VersionRow) -> str:
    began = datetime.fromtimestamp(int(claim.started_on) / 1000, UTC)
    return f"{claim.name}, since {began:%Y-%m-%d %H:%M:%S} UTC"
