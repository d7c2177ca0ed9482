"""Which server is asked next for a partition, after what others have answered; pure.

The active copy comes first. It may not be there yet, because the partition has just moved, or lack
more than a stated limit. Then the next copy that runs answers in its place. If its server does not
answer, other copies may only if reads of standbys are allowed. At last come copies that are being
restored, by least lag, within what is allowed of them.

Source: KIP-535; ksqlDB's high availability for pull queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ksql.cluster.members import Server
from ksql.cluster.replicas.replica_status import ReadPolicy, ReplicaStatus, StalenessLimits
from ksql.core.errors import KsqlError

_UNKNOWN_LAG = 2**63


@dataclass(frozen=True, slots=True)
class ReplicaRefused:
    """A server that answered, and not with rows."""

    standing: ReplicaStatus


@dataclass(frozen=True, slots=True)
class ReplicaDown:
    """A server that did not answer, or not to the end."""

    reason: str


Outcome = ReplicaRefused | ReplicaDown


@dataclass(slots=True, kw_only=True)
class Route:
    """The way of one request to one partition; ``order`` begins with the active copy's server.

    Attributes:
        lags: The servers' lags that are known beforehand, for the order of the copies.
        at_least: The position that a copy must have reached.
    """

    order: Sequence[Server]
    allowed: StalenessLimits
    lags: Mapping[Server, int] = field(default_factory=dict)
    at_least: int = 0
    outcomes: dict[Server, Outcome] = field(default_factory=dict)
    _asked_again: set[Server] = field(default_factory=set)

    def next(self) -> tuple[Server, ReadPolicy] | None:
        """Return whom to ask, and on which terms; None if nobody is left."""
        for rank, server in enumerate(self._sorted()):
            outcome = self.outcomes.get(server)
            if outcome is None:
                limited = rank > 0 or self.allowed.is_limited
                return server, ReadPolicy(
                    allowed=self.allowed, limited=limited, at_least=self.at_least
                )
            if rank == 0 and isinstance(outcome, ReplicaDown) and not self.allowed.standby_reads:
                return None
        return self._restoring()

    def note(self, server: Server, outcome: Outcome) -> None:
        """Remember why a server has not answered."""
        self.outcomes[server] = outcome

    def is_waiting(self) -> bool:
        """Return whether some server that could not answer now may do so soon.

        Nobody waits for a server that does not answer: the client should know at once.
        """
        blocked = isinstance(self.outcomes.get(self.order[0]), ReplicaDown)
        refused = any(isinstance(outcome, ReplicaRefused) for outcome in self.outcomes.values())
        return refused and not blocked

    def is_behind(self) -> bool:
        """Return whether some server refused for its position."""
        refusals = (
            outcome for outcome in self.outcomes.values() if isinstance(outcome, ReplicaRefused)
        )
        return any(self._lacks(refusal.standing) for refusal in refusals)

    def reasons(self) -> dict[str, str]:
        """Return why each server that was asked has not answered."""
        return {
            str(server): outcome.reason
            if isinstance(outcome, ReplicaDown)
            else self._refusal(outcome.standing)
            for server, outcome in self.outcomes.items()
        }

    def _lacks(self, standing: ReplicaStatus) -> bool:
        return standing.state != "MISSING" and standing.position < self.at_least

    def _refusal(self, standing: ReplicaStatus) -> str:
        text = standing.text()
        if not self._lacks(standing):
            return text
        return f"{text}; it is at the offset {standing.position}, {self.at_least} is asked for"

    def _sorted(self) -> list[Server]:
        """Return the active one's server, then the others by what is known of their lags."""
        others = sorted(self.order[1:], key=lambda server: self.lags.get(server, _UNKNOWN_LAG))
        return [*self.order[:1], *others]

    def _restoring(self) -> tuple[Server, ReadPolicy] | None:
        """Return the copy of least lag among those that refused because they do not run."""
        if not self.allowed.restoring:
            return None
        terms = ReadPolicy(
            allowed=self.allowed, running=False, limited=True, at_least=self.at_least
        )
        pool = self.order if self.allowed.standby_reads else self.order[:1]
        candidates = [
            (lag, server)
            for server in pool
            if server not in self._asked_again
            and isinstance(outcome := self.outcomes.get(server), ReplicaRefused)
            and terms.accept(outcome.standing)
            for lag in (outcome.standing.offset_lag,)
        ]
        if not candidates:
            return None
        _, server = min(
            candidates, key=lambda candidate: _UNKNOWN_LAG if candidate[0] is None else candidate[0]
        )
        self._asked_again.add(server)
        return server, terms


class NoReplica(KsqlError):
    """No server may or can answer for a partition."""

    code = 50302
    fact = (
        "Unable to execute pull query: no server can answer for partition {partition} of {table}. "
        "All nodes are dead or exceed the maximum allowed lag."
    )
    advice = (
        "Try again in a moment, or allow copies that may be behind: "
        "ksql.query.pull.enable.standby.reads, ksql.query.pull.max.allowed.offset.lag."
    )

    def __init__(self, table: str, partition: int, reasons: Mapping[str, str]) -> None:
        super().__init__(
            self.fact.format(partition=partition, table=table),
            detail="; ".join(f"{host}: {reason}" for host, reason in sorted(reasons.items())),
            hint=self.advice,
        )


class TokenBehind(NoReplica):
    """No copy has followed yet as far as a consistency token asks."""

    code = 50301
    fact = (
        "Timed out while waiting until the answer holds all that the consistency token names: "
        "no server can answer for partition {partition} of {table}."
    )
    advice = "Try again in a moment; without the token the answer is of what is there now."
