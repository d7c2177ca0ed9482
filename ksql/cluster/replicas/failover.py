"""Reads a partition's rows for one query: decides which replica is next, and continues there.

A read that fails on its way continues at the next replica, after the last key that came. All
replicas have the order of the keys' bytes.

The choice of the next server is pure: it follows from what the others have answered.

The active replica comes first. It may not be there yet, because the partition has just moved, or
lack more than a stated limit. Then the next replica that runs answers in its place. If its server
does not answer, other replicas may only if reads of standbys are allowed. At last come replicas
that are being restored, by least lag, within what is allowed of them.

Source: KIP-535; ksqlDB's high availability for pull queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ksql.cluster.members import Server
from ksql.cluster.replicas.read_request import (
    ReadRejected,
    ReadRequest,
    ReadResult,
    ReplicaReader,
    Unreachable,
)
from ksql.cluster.replicas.replica_status import ReadPolicy, ReplicaStatus, StalenessLimits
from ksql.core import KsqlError, PartitionId
from ksql.views.stores import HiddenWindows, Rows, Stored, StoredRow, united

_MOST_KEYS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Which replica of a partition an answer is of, and how far that was when it was read."""

    table: str
    partition: int
    host: str
    status: ReplicaStatus


@dataclass(slots=True)
class ReadProvenance:
    """The replicas that one query has read; ``last`` is the last host.

    Of a replica that was read several times the answer of the lowest position counts: all that lies
    before it is in each of them.
    """

    last: str = ""
    freshness: dict[tuple[str, int, str], Freshness] = field(default_factory=dict)
    seen: dict[PartitionId, int] = field(default_factory=dict)
    open: set[PartitionId] = field(default_factory=set)

    def begun(self, partition: PartitionId) -> None:
        """Remember that a partition is read; nobody knows yet how far its replica is."""
        self.open.add(partition)

    def ended(self, partition: PartitionId, seen: int | None) -> None:
        """Remember how far its replica was at most at the end of the read, if that is known."""
        if seen is not None:
            self.open.discard(partition)
            self.seen[partition] = max(seen, self.seen.get(partition, 0))

    def reached(self) -> tuple[dict[PartitionId, int], set[PartitionId]]:
        """Return how far the partitions were that were read, and those of which it is not known."""
        return dict(self.seen), set(self.open)

    def note(self, table: str, partition: int, host: str, status: ReplicaStatus) -> None:
        """Remember that a replica has answered."""
        self.last = host
        known = self.freshness.get((table, partition, host))
        if known is None or status.position <= known.status.position:
            self.freshness[table, partition, host] = Freshness(
                table=table, partition=partition, host=host, status=status
            )

    def listed(self) -> list[Freshness]:
        """Return them, ordered by table, partition and host."""
        return [self.freshness[key] for key in sorted(self.freshness)]


@dataclass(slots=True, kw_only=True)
class FailoverRows(Rows):
    """One partition's rows; for the thread of its query.

    Attributes:
        route: Makes a new way, of the servers that live now. replicas_of: The replicas of a server.
        pause: Waits a moment for a replica that cannot answer yet; False if that has lasted too
        long. named: Whether a client's token asks for a position.
    """

    far: ClassVar[bool] = True
    table: str
    topic: str
    query_id: str
    partition: int
    committed: bool
    route: Callable[[], Route]
    replicas_of: Callable[[Server], ReplicaReader]
    pause: Callable[[], bool]
    origins: ReadProvenance
    named: bool = False
    _way: Route | None = None
    _chosen: tuple[Server, ReadPolicy] | None = None
    _hidden: HiddenWindows | None = None

    def hidden(self) -> HiddenWindows | None:
        """Return which windows the replicas that were read do not show."""
        return self._hidden

    def get(self, key: bytes) -> Stored | None:
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[bytes]) -> list[Stored | None]:
        answers: list[Stored | None] = []
        while len(answers) < len(keys):
            some = keys[len(answers) : len(answers) + _MOST_KEYS]
            answers += self._answers(some)
        return answers

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        while True:
            reading = self._begun((lo, hi))
            rows = reading.rows
            if rows is None:
                return
            try:
                for chunk in rows:
                    yield from chunk
                    if chunk:
                        lo = chunk[-1].key + b"\x00"
                self._ended(reading)
                return
            except Unreachable as problem:
                self._failed(str(problem))
            finally:
                self._hidden = united((self._hidden, reading.hidden()))
                _close(rows)

    def _answers(self, keys: Sequence[bytes]) -> list[Stored | None]:
        while True:
            reading = self._begun(keys=keys)
            answers = reading.answers
            try:
                rows = [answer for some in answers or () for answer in some]
                if len(rows) == len(keys):
                    self._hidden = united((self._hidden, reading.hidden()))
                    self._ended(reading)
                    return rows
                self._failed("it has not answered for every key")
            except Unreachable as problem:
                self._failed(str(problem))

    def _begun(
        self,
        span: tuple[bytes | None, bytes | None] = (None, None),
        keys: Sequence[bytes] | None = None,
    ) -> ReadResult:
        """Begin a read at the first replica that takes it, the last one to begin with.

        Raises: NoReplica.
        """
        while True:
            server, terms = self._next()
            ask = ReadRequest(
                query_id=self.query_id,
                partition=self.partition,
                terms=terms,
                committed=self.committed,
                keys=keys,
                span=span,
            )
            try:
                reading = self.replicas_of(server).read(ask)
            except ReadRejected as turned:
                self._note(server, ReplicaRefused(turned.status))
            except Unreachable as problem:
                self._note(server, ReplicaDown(str(problem)))
            else:
                self.origins.note(self.table, self.partition, str(server), reading.status)
                self.origins.begun((self.topic, self.partition))
                self._chosen = server, terms
                return reading

    def _ended(self, reading: ReadResult) -> None:
        self.origins.ended((self.topic, self.partition), reading.seen())

    def _next(self) -> tuple[Server, ReadPolicy]:
        if self._chosen is not None:
            return self._chosen
        while True:
            self._way = self._way or self.route()
            step = self._way.next()
            if step is not None:
                return step
            if not (self._way.is_waiting() and self.pause()):
                late = self._way.is_behind() and self.named
                raise (TokenBehind if late else NoReplica)(
                    self.table, self.partition, self._way.reasons()
                )
            self._way = None

    def _failed(self, reason: str) -> None:
        """Take note that the chosen replica has begun to answer and then failed."""
        if self._chosen is not None:
            self._note(self._chosen[0], ReplicaDown(reason))

    def _note(self, server: Server, outcome: ReplicaRefused | ReplicaDown) -> None:
        self._chosen = None
        if self._way is not None:
            self._way.note(server, outcome)


def _close(rows: Iterator[list[StoredRow]]) -> None:
    """End a read that may not have come to its end."""
    close = getattr(rows, "close", None)
    if close is not None:
        close()


_UNKNOWN_LAG = 2**63


@dataclass(frozen=True, slots=True)
class ReplicaRefused:
    """A server that answered, and not with rows."""

    status: ReplicaStatus


@dataclass(frozen=True, slots=True)
class ReplicaDown:
    """A server that did not answer, or not to the end."""

    reason: str


Outcome = ReplicaRefused | ReplicaDown


@dataclass(slots=True, kw_only=True)
class Route:
    """The way of one request to one partition; ``order`` begins with the active replica's server.

    Attributes:
        lags: The servers' lags that are known beforehand, for the order of the replicas.
        at_least: The position that a replica must have reached.
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
        return any(self._lacks(refusal.status) for refusal in refusals)

    def reasons(self) -> dict[str, str]:
        """Return why each server that was asked has not answered."""
        return {
            str(server): outcome.reason
            if isinstance(outcome, ReplicaDown)
            else self._refusal(outcome.status)
            for server, outcome in self.outcomes.items()
        }

    def _lacks(self, status: ReplicaStatus) -> bool:
        return status.state != "MISSING" and status.position < self.at_least

    def _refusal(self, status: ReplicaStatus) -> str:
        text = status.text()
        if not self._lacks(status):
            return text
        return f"{text}; it is at the offset {status.position}, {self.at_least} is asked for"

    def _sorted(self) -> list[Server]:
        """Return the active one's server, then the others by what is known of their lags."""
        others = sorted(self.order[1:], key=lambda server: self.lags.get(server, _UNKNOWN_LAG))
        return [*self.order[:1], *others]

    def _restoring(self) -> tuple[Server, ReadPolicy] | None:
        """Return the replica of least lag among those that refused because they do not run."""
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
            and terms.accept(outcome.status)
            for lag in (outcome.status.offset_lag,)
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
    """No replica has followed yet as far as a consistency token asks."""

    code = 50301
    fact = (
        "Timed out while waiting until the answer holds all that the consistency token names: "
        "no server can answer for partition {partition} of {table}."
    )
    advice = "Try again in a moment; without the token the answer is of what is there now."
