"""Start-up checks: state and Kafka belong together, and no other server has them."""

from __future__ import annotations

import logging
import os
import platform
import time
from typing import TYPE_CHECKING, Final

from ksql.app import state_check
from ksql.cluster.group import GroupMembers, group_name, member_name
from ksql.cluster.leader_view import RemoteLeader
from ksql.cluster.leadership.leadership import Leadership
from ksql.cluster.members import Server
from ksql.cluster.replicas.cluster import own_host, own_server
from ksql.control.log.log import topic_name
from ksql.core.errors import StartError
from ksql.core.process import lease
from ksql.core.trash import Trash
from ksql.kafka.leadership_log import KafkaLeadershipLog, LeadershipRecord
from ksql.kafka.leadership_log import topic_name as claims_topic
from ksql.kafka.membership import GroupMember
from ksql.views.stores import formats
from ksql.views.stores.upgrades import SETTING as UPGRADE_MODE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ksql.app.state import StateDir
    from ksql.core.config import Settings
    from ksql.kafka.admin import Admin
    from ksql.kafka.settings import KafkaSettings

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


def share(
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
    findings = state_check.look(admin, kafka.bootstrap, admin.cluster_id(), topic)
    state_check.check(state, findings, settings.text("ksql.state.adopt"), trash)


def bind_state(
    settings: Settings,
    kafka: KafkaSettings,
    admin: Admin,
    state: StateDir,
    leadership: Leadership,
    now_ms: Callable[[], int],
) -> Path:
    """Have the checkpoints of a shared directory for this server alone; return where they are.

    Raises: StateInDanger, NotInCharge, StartError, KafkaUnreachable, KafkaDenied.
    """
    trash = Trash(state.trash, now_ms)
    state.look_again()
    check_format(settings, kafka, admin, state, trash)
    checkpoints = state.claim(leadership.confirm)
    for ghost in state.ghosts():
        trash.take(ghost, "checkpoint", "written by a server that had been replaced")
    return checkpoints


def fit_stores(admin: Admin, state: StateDir, now_ms: Callable[[], int]) -> None:
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
    state.look_again()
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
    if not state.shared:  # else the one that takes charge looks
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
        chore=lambda: _tidy(state, trash, keep_ms, now_ms()),
    )


def _tidy(state: StateDir, trash: Trash, keep_ms: int, now_ms: int) -> None:
    trash.expire(keep_ms)
    try:
        state.expire_places(trash, keep_ms, now_ms)
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


def elsewhere(leadership: Leadership, me: Server) -> RemoteLeader:
    """Return what a server that does not lead sees of the leader."""
    holder = leadership.holder()
    if holder is None:
        return RemoteLeader(str(me), silent=True, troubled={})
    return RemoteLeader(holder.listener, not leadership.responsive(), dict(holder.troubled))


def candidate_rank(members: GroupMembers) -> Callable[[LeadershipRecord | None], int]:
    """Return a server's place among those that could replace the holder of a claim."""
    return lambda gone: members.rank(None if gone is None else Server.parse(gone.listener))
