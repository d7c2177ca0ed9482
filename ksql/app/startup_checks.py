"""Start-up checks: state and Kafka belong together, and no other server has them.

Both are checked before anything is made or moved.

Checkpoints mean something only with the command topic that they were made under. Any other one
knows other queries, or none, and the state would belong to none.
"""

from __future__ import annotations

import logging
import os
import platform
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ksql.cluster import GroupMembers, RemoteLeader, Server, group_name, member_name
from ksql.cluster.leadership import Leadership
from ksql.cluster.replicas import own_host, own_server
from ksql.control.log import topic_name
from ksql.core import StartError, Trash
from ksql.core.process import lease
from ksql.kafka import GroupMember, KafkaLeadershipLog, LeadershipRecord
from ksql.kafka.leadership_log import topic_name as claims_topic
from ksql.views.stores import SETTING as UPGRADE_MODE
from ksql.views.stores import formats

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ksql.app.state import Identity, StateDir
    from ksql.core import Settings
    from ksql.kafka import Admin, KafkaSettings


_log = logging.getLogger(__name__)
_LOOKS: Final = 60
_LOOK_S: Final = 0.25  # for longer than file systems keep what they know of a directory


class NotShared(StartError):
    """A follower that would not have the checkpoints of the leader."""

    def __init__(
        self, root: Path, other: LeadershipRecord, what: str = "another directory"
    ) -> None:
        super().__init__(
            f"the state directory {root} is not the one of the leader",
            detail=f"That one, on host {other.host}, uses {other.state_dir}, which is {what}. "
            "Here the checkpoints would be missing when it ends.",
            hint="Give all servers of the service one ksql.state.dir on a file system that they "
            "share, and ksql.state.shared; or choose another ksql.service.id.",
        )


def check_shared_directory(
    state: StateDir,
    other: LeadershipRecord,
    claims: Callable[[], int],
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Check that the leader uses the same state directory, wherever it is mounted.

    It renews its right to write in that directory with each claim. Where that is not seen, the
    directory here is a copy. ``claims`` grows with each claim.

    Raises: NotShared, KafkaUnreachable.
    """
    if other.state_id not in ("", state.identity.state_id):
        raise NotShared(state.root, other)
    if not other.state_id:
        return
    begun, first = claims(), state.lease_of(other.state_dir)
    for _ in range(_LOOKS):
        sleep(_LOOK_S)
        if state.lease_of(other.state_dir) != first:
            return
    if claims() > begun:  # else it has ended meanwhile
        raise NotShared(state.root, other, "the original of a copy here")


def machine_of(root: Path) -> str:
    """Return what no copy of a directory has: the machine, as it runs now, and the file."""
    status = root.stat()
    return f"{lease.boot_id()}:{status.st_dev}:{status.st_ino}"


def check_format(
    settings: Settings, kafka: KafkaSettings, admin: Admin, state: StateDir, trash: Trash
) -> None:
    """Check that the state and what is in Kafka belong together.

    Raises: StateInDanger, KafkaUnreachable, KafkaDenied.
    """
    topic = topic_name(state.identity.service_id)
    findings = inspect(admin, kafka.bootstrap, admin.cluster_id(), topic)
    check(state, findings, settings.text("ksql.state.adopt"), trash)


def bind_state(
    settings: Settings,
    kafka: KafkaSettings,
    admin: Admin,
    state: StateDir,
    leadership: Leadership,
    now_ms: Callable[[], int],
) -> Path:
    """Have the checkpoints of a shared directory for this server alone; return where they are.

    Raises: StateInDanger, NotLeader, StartError, KafkaUnreachable, KafkaDenied.
    """
    trash = Trash(state.trash, now_ms)
    state.reread_identity()
    check_format(settings, kafka, admin, state, trash)
    checkpoints = state.claim(leadership.confirm)
    for orphan in state.orphaned_checkpoints():
        trash.take(orphan, "checkpoint", "written by a server that had been replaced")
    return checkpoints


def discard_old_stores(admin: Admin, state: StateDir, now_ms: Callable[[], int]) -> None:
    """Move this server's stores aside if they are of a service that was terminated since.

    Query ids start again with the command topic, so that another table could be taken for its own.

    Raises: KafkaUnreachable, StartError.
    """
    topic_id = admin.topic_id(topic_name(state.identity.service_id)) or ""
    known = state.stores_of()
    if known not in ("", topic_id) and state.stores.is_dir():
        trash = Trash(state.trash, now_ms)
        for query_stores in sorted(state.stores.iterdir()):
            trash.take(query_stores, "store", "the command topic was recreated")
    if topic_id != known:
        state.stores_belong_to(topic_id)


def has_ended(admin: Admin, state: StateDir) -> bool:
    """Return whether another server has terminated the service: its command topic is gone.

    Raises: KafkaUnreachable, StartError.
    """
    if admin.topic_id(topic_name(state.identity.service_id)) is not None:
        return False
    state.reread_identity()
    return state.identity.ended


def prepare(
    settings: Settings,
    kafka: KafkaSettings,
    admin: Admin,
    state: StateDir,
    *,
    now_ms: Callable[[], int],
    random_name: Callable[[], str],
    on_lost: Callable[[str], None],
) -> Leadership:
    """Check that they belong together; the tenure must still be acquired.

    Raises: StateInDanger, KafkaUnreachable, KafkaDenied, KafkaRefused.
    """
    trash = Trash(state.trash, now_ms)
    if not state.shared:  # else the new leader looks
        check_format(settings, kafka, admin, state, trash)
    keep_ms = settings.number("ksql.state.aside.retention.ms")
    identity = state.identity
    me = LeadershipRecord(
        id=random_name(),
        host=platform.node(),
        pid=os.getpid(),
        state_dir=str(state.own),
        state_id=identity.state_id,
        since_ms=now_ms(),
        listener=own_host(settings),
        place=machine_of(state.root),
    )
    replicas = settings.number("ksql.internal.topic.replicas")
    claims = KafkaLeadershipLog(kafka, identity.service_id, replicas)
    claims.open()
    return Leadership(
        claims,
        me,
        identity.service_id,
        state.lease,
        on_lost=on_lost,
        gives_way=state.shared,
        cleanup=lambda: _tidy(state, trash, keep_ms, now_ms()),
    )


def _tidy(state: StateDir, trash: Trash, keep_ms: int, now_ms: int) -> None:
    trash.expire(keep_ms)
    try:
        state.expire_servers(trash, keep_ms, now_ms)
    except OSError as problem:  # the next time will do
        _log.warning("places_left", extra={"reason": str(problem)})


def join(settings: Settings, kafka: KafkaSettings, leadership: Leadership) -> GroupMembers:
    """Join the servers of the service; return them."""
    service_id, me = settings.text("ksql.service.id"), own_server(settings)
    waits = settings.text(UPGRADE_MODE) == "roll_over"
    name = member_name(me, formats.KNOWN.newest, waits=waits)
    member = GroupMember(kafka, group_name(service_id), claims_topic(service_id), name)

    def leader() -> Server | None:
        holder = leadership.holder()
        return None if holder is None else Server.parse(holder.listener)

    member.start()
    return GroupMembers(me, member, leader)


def remote_leader(leadership: Leadership, me: Server) -> RemoteLeader:
    """Return what a server that does not lead sees of the leader."""
    holder = leadership.holder()
    if holder is None:
        return RemoteLeader(str(me), silent=True, troubled={})
    return RemoteLeader(holder.listener, not leadership.responsive(), dict(holder.troubled))


def candidate_rank(members: GroupMembers) -> Callable[[LeadershipRecord | None], int]:
    """Return a server's place among those that could replace the holder of a claim."""
    return lambda gone: members.rank(None if gone is None else Server.parse(gone.listener))


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


def inspect(admin: Admin, bootstrap: str, cluster_id: str, topic: str) -> StartFindings:
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
