"""Why a backup cannot be made or brought back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import StartError

if TYPE_CHECKING:
    from pathlib import Path


class NoBackup(StartError):
    """A directory that holds no whole backup."""

    def __init__(self, folder: Path, what: str) -> None:
        super().__init__(
            f"{folder} is no whole backup: {what}",
            hint="Nothing was changed. A backup that was cut off has no backup.json: take another "
            "one.",
        )


class NothingToSave(StartError):
    """There is no command topic, or only a part of one."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"there is nothing whole to save: {what}",
            hint="Check bootstrap.servers and ksql.service.id. If the topic is lost, bring an "
            "earlier backup back.",
        )


class NotBroughtBack(StartError):
    """A topic that was written is not what was saved."""

    def __init__(self, topic: str, what: str) -> None:
        super().__init__(
            f"the topic {topic} was written, and is not what was saved: {what}",
            hint="Repeat the command; nobody else may write to the topic meanwhile.",
        )
