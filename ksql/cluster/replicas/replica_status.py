"""The lag of a partition's replica, and whether a request may be answered from it.

A replica runs once it holds all that its topic held when it was opened; before that it restores.
The limits that the request or the server states bind every replica, the active one too. It follows
its topic like the other ones, and is behind when it returns from a pause. Where none is stated the
active replica answers while it runs, however far its topic is ahead at the moment.

Source: KIP-535; ksqlDB's high availability for pull queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from ksql.cluster.replicas.partition_assignment import Role

if TYPE_CHECKING:
    from ksql.core import Settings

STANDBY_READS: Final = "ksql.query.pull.enable.standby.reads"
OFFSET_LAG: Final = "ksql.query.pull.max.allowed.offset.lag"
TIME_LAG: Final = "ksql.query.pull.max.allowed.time.lag.ms"

State = Literal["RUNNING", "RESTORING", "MISSING"]
"""``MISSING``: the server holds no copy of the partition, or none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStatus:
    """How far one server's replica of one partition is.

    Attributes:
        position: The offset after all that a request would see.
        offset_lag: How many offsets of the topic are behind that; None if it is not known.
        time_lag_ms: All that was in the topic so long ago is there, and perhaps more; None if that
            was never seen.
    """

    state: State
    role: Role = "NONE"
    position: int = 0
    offset_lag: int | None = None
    time_lag_ms: int | None = None

    def text(self) -> str:
        """Describe it in words, for the reason of a refusal."""
        if self.state == "MISSING":
            return "it holds no copy"
        lag = "unknown" if self.offset_lag is None else str(self.offset_lag)
        time = "" if self.time_lag_ms is None else f", {self.time_lag_ms} ms"
        state = "it is being restored" if self.state == "RESTORING" else "its copy is behind"
        return f"{state} (lag {lag}{time})"


MISSING: Final = ReplicaStatus(state="MISSING")


@dataclass(frozen=True, slots=True, kw_only=True)
class StalenessLimits:
    """The limits that a request sets to replicas that may be behind; a lag of None has no limit.

    ``restoring``: whether a replica that is being restored may answer within the limits.
    """

    standby_reads: bool = False
    restoring: bool = False
    offset_lag: int | None = None
    time_lag_ms: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> StalenessLimits:
        """Return what the server's and the request's settings say.

        Where reads of standbys are not allowed, an active replica that is being restored answers
        only if a lag is stated.
        """
        standby = settings.flag(STANDBY_READS)
        offset = None if settings.is_default(OFFSET_LAG) else settings.number(OFFSET_LAG)
        time = None if settings.is_default(TIME_LAG) else settings.number(TIME_LAG)
        stated = offset is not None or time is not None
        return cls(
            standby_reads=standby,
            restoring=standby or stated,
            offset_lag=offset,
            time_lag_ms=time,
        )

    @property
    def is_limited(self) -> bool:
        """Whether a limit is stated."""
        return self.offset_lag is not None or self.time_lag_ms is not None

    def covers(self, status: ReplicaStatus) -> bool:
        """Return whether a lag is within the limits; one that is not known is within none."""
        return _within(status.offset_lag, self.offset_lag) and _within(
            status.time_lag_ms, self.time_lag_ms
        )


def _within(lag: int | None, limit: int | None) -> bool:
    return limit is None or (lag is not None and lag <= limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPolicy:
    """On which terms one replica is asked.

    ``running``: only if it runs; without it also while it is restored. ``limited``: only within the
    limits of ``allowed``. ``at_least``: only from that position on.
    """

    allowed: StalenessLimits
    running: bool = True
    limited: bool = False
    at_least: int = 0

    def accept(self, status: ReplicaStatus) -> bool:
        """Return whether a replica with that status may answer."""
        if status.state == "MISSING" or status.position < self.at_least:
            return False
        if self.running and status.state != "RUNNING":
            return False
        return not self.limited or self.allowed.covers(status)
