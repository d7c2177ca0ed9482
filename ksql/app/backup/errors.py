"""Why a backup cannot be made or brought back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path


class TargetThere(StartError):
    """A backup is to be made where something lies already."""

    def __init__(self, target: Path) -> None:
        super().__init__(
            f"{target} is there already: a backup overwrites nothing",
            hint="Name a directory that does not exist; its parent must exist.",
        )


class NoBackup(StartError):
    """A directory that holds no whole backup."""

    def __init__(self, folder: Path, what: str) -> None:
        super().__init__(
            f"{folder} is no whole backup: {what}",
            hint="Nothing was changed. A backup that was cut off has no backup.json: take another "
            "one.",
        )


class NewerBackup(StartError):
    """A backup that a later version has made."""

    def __init__(self, folder: Path, version: int, known: int) -> None:
        super().__init__(
            f"the backup {folder} has format {version}, this version knows up to {known}",
            hint="Bring it back with the version that made it.",
        )


class OtherService(StartError):
    """A backup of another service."""

    def __init__(self, folder: Path, owner: str, service_id: str) -> None:
        super().__init__(
            f'the backup {folder} is of the service "{owner}", not of "{service_id}"',
            hint=f"Name it: -o ksql.service.id={owner}",
        )


class NothingToSave(StartError):
    """There is no command topic, or only a part of one."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"there is nothing whole to save: {what}",
            hint="Check bootstrap.servers and ksql.service.id. If the topic is lost, bring an "
            "earlier backup back.",
        )


class BrokerInside(StartError):
    """Kafka's data lies in the state directory, which a server uses."""

    def __init__(self, root: Path) -> None:
        super().__init__(
            f"the embedded broker's data is a part of the state directory {root}, which a server "
            "uses, or which --no-state leaves out",
            hint="Stop the server and save the directory, too. Or save its topics alone: the "
            "server printed at its start where Kafka is; give that as "
            "-o bootstrap.servers=HOST:PORT.",
        )


class TopicThere(StartError):
    """A topic to be brought back exists, and is not what was saved."""

    def __init__(self, topic: str, what: str) -> None:
        super().__init__(
            f"the topic {topic} is there: {what}",
            hint="Nothing was changed. To delete it, with all that it has and the backup has not, "
            "and bring the saved one back, add --overwrite.",
        )


class StateThere(StartError):
    """A state directory to be brought back holds something."""

    def __init__(self, root: Path) -> None:
        super().__init__(
            f"the state directory {root} is not empty",
            hint="Nothing was changed. --keep-state brings the topics alone back and leaves the "
            "directory as it is: right if only topics were lost. --overwrite moves what is there "
            "to a directory replaced-.. in it and brings the saved state back.",
        )


class ServerRuns(StartError):
    """A server of the service leads."""

    def __init__(self, service_id: str, host: str, pid: int) -> None:
        super().__init__(
            f'a server of the service "{service_id}" runs, on host {host} as process {pid}',
            hint="Nothing was changed. Stop all servers of the service first.",
        )


class NotBroughtBack(StartError):
    """A topic that was written is not what was saved."""

    def __init__(self, topic: str, what: str) -> None:
        super().__init__(
            f"the topic {topic} was written, and is not what was saved: {what}",
            hint="Repeat the command; nobody else may write to the topic meanwhile.",
        )
