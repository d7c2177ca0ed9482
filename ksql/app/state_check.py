"""Checks that the state directory and Kafka belong together, before anything is made or moved.

Checkpoints mean something only with the command topic that they were made under. Any other one
knows other queries, or none, and the state would belong to none.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ksql.core.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.app.state import Identity, StateDir
    from ksql.core.trash import Trash
    from ksql.kafka.admin import Admin

_log = logging.getLogger(__name__)
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFindings:
    """The findings of a start: a cluster and its command topic (``topic_id`` None: there is none).

    ``topic_id`` is empty where the brokers report no ids. ``first`` and ``end`` are the offsets of
    the topic's first record and after its last one.
    """

    bootstrap: str
    cluster_id: str
    topic: str
    topic_id: str | None
    first: int = 0
    end: int = 0

    @property
    def word(self) -> str:
        """Return the word by which an operator adopts exactly this, and nothing later."""
        return f"{self.cluster_id}:{self.topic_id or 'none'}"


class StateInDanger(StartError):
    """State that what was found in Kafka knows nothing of."""

    def __init__(
        self, root: Path, what: str, held: list[str], findings: StartFindings, trash: Path
    ) -> None:
        names = ", ".join(held[:_SHOWN]) + (", .." if len(held) > _SHOWN else "")
        super().__init__(
            f"the state directory {root} does not belong to what is in Kafka: {what}",
            detail=f"It holds the state of {len(held)} queries ({names}): what they have counted, "
            "and how far they have read. Nothing there knows them, so they would be lost.",
            hint="Check bootstrap.servers (without it, an embedded broker is started), "
            "ksql.service.id and ksql.state.dir. If the command topic is lost, bring it back from "
            "a backup: `ksql restore --keep-state DIRECTORY`. To start over on purpose, start once "
            f"with -o ksql.state.adopt={findings.word}: that state is then moved to {trash}, not "
            "deleted.",
        )


def look(admin: Admin, bootstrap: str, cluster_id: str, topic: str) -> StartFindings:
    """Look at the cluster and its command topic; create nothing.

    Raises: KafkaUnreachable, KafkaDenied.
    """
    if topic not in admin.topics():
        return StartFindings(bootstrap=bootstrap, cluster_id=cluster_id, topic=topic, topic_id=None)
    partition = (topic, 0)
    first = admin.begin_offsets([topic])[partition]
    end = admin.end_offsets([topic], committed=False)[partition]
    return StartFindings(
        bootstrap=bootstrap,
        cluster_id=cluster_id,
        topic=topic,
        topic_id=admin.topic_id(topic),
        first=first,
        end=end,
    )


def check(state: StateDir, findings: StartFindings, adopt: str, trash: Trash) -> None:
    """Pass only if nothing is in danger, or if an operator has adopted exactly this.

    The remains of a terminated service are moved aside, as is state that an operator gives up.

    Raises: StateInDanger.
    """
    what = _mismatch(state.identity, findings)
    if what is None:
        return
    held = [folder for folder in _folders(state.queries) if any(folder.iterdir())]
    if held and not state.identity.ended and adopt != findings.word:
        names = [folder.name for folder in held]
        raise StateInDanger(state.root, what, names, findings, state.trash)
    stores = _folders(state.stores)
    for folder in held:
        trash.take(folder, "checkpoint", what)
    for folder in stores:
        trash.take(folder, "store", what)
    if held or stores:
        _log.warning("state_begins_anew", extra={"reason": what, "cluster": findings.cluster_id})


def _folders(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if path.is_dir())


def _mismatch(known: Identity, findings: StartFindings) -> str | None:
    """Return the mismatch between state and cluster; None if they agree."""
    if known.cluster_id and known.cluster_id != findings.cluster_id:
        return (
            f"it was used with the Kafka cluster {known.cluster_id}, and {findings.bootstrap} is "
            f"the cluster {findings.cluster_id}"
        )
    if findings.topic_id is None:
        return f"the command topic {findings.topic} is missing on {findings.bootstrap}"
    if known.command_topic_id and findings.topic_id and known.command_topic_id != findings.topic_id:
        return (
            f"the command topic {findings.topic} was deleted and recreated (its id was "
            f"{known.command_topic_id} and is {findings.topic_id})"
        )
    if findings.first == findings.end:
        return f"the command topic {findings.topic} is empty"
    if findings.first > 0:
        return (
            f"the first commands of the command topic {findings.topic} are gone "
            f"(it begins at offset {findings.first})"
        )
    return None
