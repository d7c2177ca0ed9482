"""Leader election by claims in a fenced Kafka topic: one server at a time leads a service.

A server claims the service at its start and repeats the claim while it lives. A server that finds a
living claim of another one refuses to start. A claim that is not repeated for a while is void and
may be taken over. That fences its server, which learns it with its next claim.
Its tasks may no longer write by then, since their right (``core.process.lease``) lasts shorter.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import UTC, datetime
from threading import Event, Lock
from typing import TYPE_CHECKING, Final

from ksql.core import LEASE_UNWRITABLE, KsqlError, StartError
from ksql.core.process import NotLeader, PeriodicWorker, RepeatedFailure, in_background, lease
from ksql.kafka import KafkaUnreachable, ProducerFenced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ksql.kafka import KafkaLeadershipLog, LeadershipRecord


_log = logging.getLogger(__name__)

BEAT_S: Final = 1.0
LEASE_S: Final = 8.0
SILENCE_S: Final = 10.0  # longer than a lease: who is silent that long does not write
_POLL_S: Final = 0.25
_STEP_S: Final = 2.0  # between two that could take over: the second one sees the first one's claim
_LATE_S: Final = 3.0
_TRIES: Final = 3
_PATIENCE_S: Final = 30.0
_END_S: Final = 5.0
_CLEANUP_S: Final = 3600.0


class AnotherServer(StartError):
    """A server of the service runs already."""

    operator = False  # what is in the way may be gone at the next try

    def __init__(self, service_id: str, other: LeadershipRecord, *, copied: bool = False) -> None:
        self.claim = other
        copy = " The directory here is a copy of that one." if copied else ""
        since = datetime.fromtimestamp(other.since_ms / 1000, UTC).isoformat(" ", "seconds")
        super().__init__(
            f'another server is the leader of the service "{service_id}"',
            detail=f"It runs on host {other.host} as process {other.pid}, with the state directory "
            f"{other.state_dir}, since {since}. Two servers would both run every query, and write "
            f"every result twice.{copy}",
            hint="Stop the other one (a server that was killed elsewhere counts as gone after "
            f"{SILENCE_S:.0f} s), or choose another ksql.service.id.",
        )


class Leadership:
    """This server's leadership, from ``acquire`` to ``close``."""

    def __init__(
        self,
        claims: KafkaLeadershipLog,
        me: LeadershipRecord,
        service_id: str,
        file: Path,
        *,
        on_lost: Callable[[str], None],
        gives_way: bool = False,
        cleanup: Callable[[], object] = lambda: None,
        sleep: Callable[[float], object] = time.sleep,
        now_s: Callable[[], float] = lease.now_s,
    ) -> None:
        """Take ``file``, where the tasks look, and ``on_lost``, called once, with the reason.

        ``gives_way``: others could lead, so a leader whose tasks may not write gives up.
        ``cleanup`` is done at the start and once an hour.
        """
        self._claims = claims
        self._me = me
        self._service_id = service_id
        self._file = file
        self._on_lost = on_lost
        self._gives_way = gives_way
        self._cleanup = cleanup
        self._sleep = sleep
        self._now_s = now_s
        self._held = False
        self._began = 0.0
        self._outage_logged = False
        self._renewed_s = 0.0
        self.problem = ""
        """Why the tasks of this leader may not write at the moment; usually empty."""
        self._cleanup_due_s = 0.0
        self._lock = Lock()
        self.seen: LeadershipRecord | None = None
        """The last claim that was seen while this server waited for its turn."""
        self._seen_s = 0.0
        self.troubled: Callable[[], Mapping[str, str]] = dict
        """The queries that do not run as they should, with their states; other servers see them."""
        self._worker = PeriodicWorker(
            "leadership", BEAT_S, self._turn, RepeatedFailure(_log, "claim_failed")
        )
        self.lease = lease.Lease(str(file), me.id)

    def acquire(self) -> None:
        """Become the leader.

        Raises: AnotherServer, KafkaUnreachable.
        """
        self._await_orphans()
        for _ in range(_TRIES):
            end, record = self._claims.end(), self._claims.last()
            if record is not None and self._may_live(record):
                end = self._await_silence(end)
            if self._contend(end):
                return
            self._await_silence(self._claims.end())
        record = self._claims.last()
        raise self._refusal(record or self._me)

    def await_leadership(self, stop: Event, rank: Callable[[LeadershipRecord | None], int]) -> bool:
        """Become the leader once nobody else is; False if ``stop`` was set before.

        A server that gives the service free is followed at once, one that falls silent after
        ``SILENCE_S``. ``rank`` is how many other servers should try before this one.
        """
        end, since = -1, self._now_s()
        self._seen_s = since  # else nobody would lead until the first look
        while not stop.wait(_POLL_S):
            try:
                now, record = self._claims.end(), self._claims.last()
            except KsqlError:  # nothing is known of the other meanwhile
                since = self._now_s()
                continue
            self.seen = record
            if now != end:
                end, since = now, self._now_s()
                self._seen_s = since
            free = record is None or not self._may_live(record)
            wait_s = (0.0 if free else SILENCE_S) + _STEP_S * rank(record)
            if self._now_s() - since < wait_s:
                continue
            try:
                self._await_orphans()
                if stop.is_set():
                    return False
                if self._contend(end):
                    return True
            except (KafkaUnreachable, StartError) as problem:
                _log.warning("claim_not_taken", extra={"reason": problem.text()})
            end = -1
        return False

    def holder(self) -> LeadershipRecord | None:
        """Return the claim of the leader, as far as is known; None if nobody is."""
        if self._held:
            return self._claim()
        silent = self._now_s() - self._seen_s >= SILENCE_S
        return None if silent or self.seen is None or self.seen.released else self.seen

    def claims_end(self) -> int:
        """Return a number that grows with each claim of any server.

        Raises: KafkaUnreachable.
        """
        return self._claims.end()

    def responsive(self) -> bool:
        """Return whether the leader has repeated its claim lately."""
        return self._held or self._now_s() - self._seen_s < _LATE_S

    def confirm(self) -> None:
        """Return if this server leads at this moment.

        Raises: NotLeader, KafkaUnreachable.
        """
        with self._lock:
            for _ in range(_TRIES):
                try:
                    self._claims.append(self._claim())
                except ProducerFenced:
                    self._settle()  # one that gave way to this server has shut it out
                    if not self._held:
                        break
                else:
                    return
        raise NotLeader(_words(None))

    def _contend(self, end: int) -> bool:
        """Shut the others out and claim; False if one of several that do so has been quicker.

        One that has claimed already stays the leader: it finds itself fenced, and claims again.
        Who cannot write its lease claims nothing, as each claim makes the others wait.

        Raises: StartError, KafkaUnreachable.
        """
        self._prove_writable()
        try:
            self._take()
            record = self._claims.last()
            if self._claims.end() != end and record is not None and self._may_live(record):
                return False
            self._first_beat()
        except ProducerFenced:
            return False
        self._held = True
        return True

    def start(self) -> None:
        """Repeat the claim from now on."""
        self._cleanup_due_s = self._now_s()
        self._worker.start()

    def beat(self) -> None:
        """Repeat the claim once; call ``on_lost`` if another server has taken over."""
        if not self._held:
            return
        with self._lock:
            try:
                self._renew_claim()
                self._outage_logged = False
            except ProducerFenced:
                self._settle()
            except KsqlError as problem:  # the right runs out if this continues
                self._tell(problem)
            except OSError as problem:
                self._tell(problem)
                self._give_up_if_late(problem)

    def close(self) -> None:
        """Give the service free; what runs must have been stopped."""
        if self._worker.stop(_END_S) and self._held:
            self._held = False
            try:
                lease.withdraw(self._file, self._me.id)
                self._claims.append(replace(self._me, released=True))
            except (KsqlError, OSError) as problem:
                _log.warning("claim_not_released", extra={"reason": str(problem)})
        self._claims.close()

    def _turn(self) -> None:
        self.beat()
        if self._held and self._now_s() >= self._cleanup_due_s:
            self._cleanup_due_s = self._now_s() + _CLEANUP_S
            in_background("trash", self._cleanup)

    def _renew_claim(self) -> None:
        # A claim that is tried again may have counted at its first try: the right counts from there
        began = self._began = self._began or self._now_s()
        self._claims.append(self._claim())
        self._began = 0.0
        lease.write(self._file, self._me.id, began + LEASE_S)
        self._renewed_s, self.problem = began, ""

    def _give_up_if_late(self, problem: OSError) -> None:
        """Give up once the right has run out, as its tasks wait for a file that nobody writes.

        Its claims would keep all others from leading. Nobody else can lead where servers do not
        share a directory: there the next claim tries again, and health has the reason.
        """
        if self._now_s() < self._renewed_s + LEASE_S:
            return
        logged, self.problem = self.problem, _unwritable(problem)
        if not self._gives_way:
            if not logged:
                _log.error("lease_not_renewed", extra={"reason": self.problem})
            return
        _log.error("leadership_given_up", extra={"reason": self.problem})
        self._held = False
        try:
            lease.withdraw(self._file, self._me.id)
            self._claims.append(replace(self._me, released=True))
        except (KsqlError, OSError) as failure:  # its silence says the same, later
            _log.warning("claim_not_released", extra={"reason": str(failure)})
        self._on_lost(self.problem)

    def _claim(self) -> LeadershipRecord:
        return replace(self._me, troubled=tuple(sorted(self.troubled().items())))

    def _take(self) -> None:
        self._claims.acquire()
        self._began = 0.0

    def _prove_writable(self) -> None:
        try:
            lease.write(self._file, self._me.id, self._now_s(), lost=True)
        except OSError as problem:
            raise self._no_lease(problem) from problem

    def _no_lease(self, problem: OSError) -> StartError:
        return LEASE_UNWRITABLE(file=self._file, reason=str(problem))

    def _first_beat(self) -> None:
        deadline = self._now_s() + _PATIENCE_S
        while True:
            try:
                self._renew_claim()
            except KafkaUnreachable:
                if self._now_s() > deadline:
                    raise
                self._sleep(_POLL_S)
            except OSError as problem:
                raise self._no_lease(problem) from problem
            else:
                return

    def _settle(self) -> None:
        """Claim again after another server, or a broker's abort, fenced us; else give up."""
        try:
            if self._is_last():
                self._take()
                if self._is_last():
                    self._renew_claim()
                    return
            other = self._claims.last()
        except ProducerFenced:
            return  # the next claim finds out
        except (KsqlError, OSError) as problem:
            self._tell(problem)
            return
        self._held = False
        try:
            lease.withdraw(self._file, self._me.id)
        except OSError as problem:
            _log.warning("lease_not_withdrawn", extra={"reason": str(problem)})
        self._on_lost(_words(other))

    def _tell(self, problem: Exception) -> None:
        """Log the problem, once for each outage."""
        if not self._outage_logged:
            _log.warning("claim_not_repeated", extra={"reason": str(problem)})
        self._outage_logged = True

    def _is_last(self) -> bool:
        record = self._claims.last()
        return record is None or record.id == self._me.id

    def _may_live(self, claim: LeadershipRecord) -> bool:
        """Return whether its server may live: not one of our own directory, whose lock we hold."""
        me = self._me
        ours = (me.host, me.state_dir, me.state_id)
        same = (claim.host, claim.state_dir, claim.state_id) == ours
        if same and me.place and claim.place:  # else machines of one name could have copies of it
            same = claim.place == me.place
        return not claim.released and not same

    def _await_silence(self, end: int) -> int:
        """Wait until a claim is void.

        Raises: AnotherServer if it is repeated meanwhile.
        """
        deadline = self._now_s() + SILENCE_S
        while self._now_s() < deadline:
            now = self._claims.end()
            record = self._claims.last() if now != end else None
            if record is not None:
                if self._may_live(record):
                    raise self._refusal(record)
                return now
            self._sleep(_POLL_S)
        return end

    def _refusal(self, record: LeadershipRecord) -> AnotherServer:
        self.seen, self._seen_s = record, self._now_s()
        copied = record.id != self._me.id and record.state_id == self._me.state_id != ""
        return AnotherServer(self._service_id, record, copied=copied)

    def _await_orphans(self) -> None:
        """Wait until the right of a server that was killed over this directory ends.

        Its tasks may write until then.
        """
        orphan_lease = lease.read(self._file)
        if orphan_lease is not None:
            self._sleep(min(orphan_lease.left_s(), LEASE_S))


def _unwritable(problem: OSError) -> str:
    return f"Its tasks may not write, as their lease could not be renewed: {problem}."


def _words(other: LeadershipRecord | None) -> str:
    if other is None:
        return "Another server has taken over."
    return (
        f"Another server has taken over: on host {other.host}, process {other.pid}, with the state "
        f"directory {other.state_dir}."
    )
