"""The limits of a server's queries (at a time, in a second, bytes of an hour), and their counts.

Source: ksqlDB server configuration reference, ``ksql.query.pull.max.*``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Final, Literal

from ksql.core import (
    SHORT_S,
    Durations,
    KsqlError,
    PerHour,
    PerSecond,
    Settings,
    Tally,
    TooManyRequests,
    begun_span,
)
from ksql.serving.results import (
    ResultRow,
    ResultStream,
    freshness_of,
    host_of,
    is_brief,
    is_dated,
    is_quick,
    marks_deletes,
    notes_of,
    token_of,
)
from ksql.views import TableNotReady

if TYPE_CHECKING:
    from ksql.cluster.replicas import Freshness
    from ksql.core import Token
    from ksql.core.types import Column

Kind = Literal["pull", "push"]
Outcome = Literal["done", "failed", "refused"]


class ReadMetrics:
    """The counts since the server began; for any number of threads.

    A query is counted when it has ended: ``done`` also if its client has left. ``refused`` are
    those that a limit did not let begin.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Take ``clock``, in seconds, which never goes back."""
        self.clock = clock
        self.requests = Tally()
        """By kind and outcome."""
        self.rows = Tally()
        """By kind."""
        self.bytes = Tally()
        """By kind; of answers whose bytes count towards a limit."""
        self.pulls = Durations(SHORT_S)
        """From the start of a pull query to its last row, whatever its outcome."""

    def refused(self, kind: Kind) -> None:
        """Count a query that a limit did not let begin."""
        self.requests.add(kind, "refused")

    def ended(self, kind: Kind, began_s: float, *, failed: bool) -> None:
        """Count a query that began at that time of the clock."""
        self.requests.add(kind, "failed" if failed else "done")
        if kind == "pull":
            self.pulls.add(self.clock() - began_s)


QPS: Final = "ksql.query.pull.max.qps"
CONCURRENT: Final = "ksql.query.pull.max.concurrent.requests"
PULL_BANDWIDTH: Final = "ksql.query.pull.max.hourly.bandwidth.megabytes"
PUSH_BANDWIDTH: Final = "ksql.query.push.v2.max.hourly.bandwidth.megabytes"
_MEGABYTE: Final = 1_048_576
UNLIMITED: Final = 2_147_483_647


class Limits:
    """The limits of one server's queries; ``metrics`` counts these."""

    def __init__(self, settings: Settings, now_ms: Callable[[], int]) -> None:
        """Take ``now_ms``: a clock that never goes back."""
        self._qps = settings.number(QPS)
        self._rate = PerSecond(self._qps, now_ms)
        self._concurrent = settings.number(CONCURRENT)
        self._running = 0
        self._lock = threading.Lock()
        self._pull_bandwidth = PerHour(_bytes(settings, PULL_BANDWIDTH), now_ms)
        self._pushed = PerHour(_bytes(settings, PUSH_BANDWIDTH), now_ms)
        self.metrics = ReadMetrics()

    def pull(
        self, start: Callable[[], ResultStream], ended: Callable[[bool], None] | None = None
    ) -> LimitedStream:
        """Start a pull query, if one more may run.

        ``ended`` is called once a query that was started has ended; True if it has failed.
        Raises: TooManyRequests.
        """
        try:
            self._admit_pull()
        except TooManyRequests:
            self.metrics.refused("pull")
            raise

        def end(failed: bool) -> None:
            self._release()
            if ended is not None:
                ended(failed)

        try:
            return self._limited("pull", start, self._pull_bandwidth, end)
        except BaseException:
            self._release()
            raise

    def _admit_pull(self) -> None:
        if self._pull_bandwidth.is_full():
            raise TooManyRequests("Host is at bandwidth rate limit for pull queries.")
        with self._lock:
            if self._running >= self._concurrent:
                raise TooManyRequests(
                    "Host is at concurrency limit for pull queries. Currently set to "
                    f"{self._concurrent} maximum concurrent operations."
                )
            if self._qps < UNLIMITED and not self._rate.take():
                raise TooManyRequests(
                    "Host is at rate limit for pull queries. "
                    f"Currently set to {float(self._qps)} qps."
                )
            self._running += 1

    def _limited(
        self,
        kind: Kind,
        start: Callable[[], ResultStream],
        bandwidth: PerHour,
        on_end: Callable[[bool], None],
    ) -> LimitedStream:
        """Start a query; one that waits for its table is started again, and counts then."""
        metrics = self.metrics
        began_s = metrics.clock()
        traced = begun_span(kind) if kind == "pull" else None

        def note_end(failed: bool, error: str = "failed") -> None:
            metrics.ended(kind, began_s, failed=failed)
            if traced is not None:
                traced({}, error if failed else "")

        def end(failed: bool) -> None:
            note_end(failed)
            on_end(failed)

        try:
            stream = start()
        except TableNotReady:
            raise
        except TooManyRequests:
            metrics.refused(kind)
            raise
        except KsqlError as error:
            note_end(True, error.message)
            raise
        return LimitedStream(stream, bandwidth, end, metrics)

    def push(self, start: Callable[[], ResultStream]) -> LimitedStream:
        """Start a push query, if its rows may still be sent.

        Raises: TooManyRequests.
        """
        if self._pushed.is_full():
            self.metrics.refused("push")
            raise TooManyRequests("Host is at bandwidth rate limit for push queries.")
        return self._limited("push", start, self._pushed, lambda _failed: None)

    def _release(self) -> None:
        with self._lock:
            self._running -= 1


class LimitedStream:
    """A query that counts until it has ended; see ``ResultStream``."""

    def __init__(
        self,
        stream: ResultStream,
        bandwidth: PerHour,
        on_end: Callable[[bool], None],
        metrics: ReadMetrics,
    ) -> None:
        """Take ``on_end``, which gets, once, whether the query has failed."""
        self.query = stream
        self.kind: Literal["pull", "push"] = stream.kind
        self.columns: tuple[Column, ...] = stream.columns
        self.quick = is_quick(stream)
        self.brief = is_brief(stream)
        self._bandwidth = bandwidth
        self._on_end = on_end
        self._metrics = metrics
        self._failed = False
        self._ended = threading.Lock()  # held from the end on

    @property
    def query_id(self) -> str | None:
        return self.query.query_id

    @property
    def final_message(self) -> str | None:
        return self.query.final_message

    @property
    def dated(self) -> bool:
        """Whether the answer should say which replicas it is of."""
        return is_dated(self.query)

    @property
    def host(self) -> Callable[[], str]:
        """The function that returns which server's replica the rows given last are of."""
        return lambda: host_of(self.query)

    @property
    def token(self) -> Callable[[], Token] | None:
        """The function that makes the token of the rows, if the request is about tokens."""
        return token_of(self.query)

    @property
    def marks_deletes(self) -> bool:
        """Whether its reader wants deletions also in a form that has no mark for them."""
        return marks_deletes(self.query)

    def notes(self) -> list[str]:
        """Return notes on the rows that the answer lacks, as far as it was read."""
        return notes_of(self.query)

    @property
    def freshness(self) -> list[Freshness]:
        """The replicas that it has read, if they were asked for."""
        return freshness_of(self.query)

    def batches(self) -> Iterator[list[ResultRow]]:
        batches = self.query.batches()
        try:
            for batch in batches:
                if batch:
                    self._metrics.rows.add(self.kind, by=len(batch))
                yield batch
        except Exception:
            self._failed = True
            raise
        finally:
            if isinstance(batches, Generator):  # its reader may have left
                batches.close()
            self._end()

    def close(self) -> None:
        try:
            self.query.close()
        finally:
            self._end()

    def sent(self, size_bytes: int) -> None:
        self._bandwidth.add(size_bytes)
        self._metrics.bytes.add(self.kind, by=size_bytes)

    def _end(self) -> None:
        if self._ended.acquire(blocking=False):
            self._on_end(self._failed)


def unlimited() -> Limits:
    """Return limits that nothing reaches."""
    return Limits(Settings(), lambda: 0)


def _bytes(settings: Settings, name: str) -> int | None:
    megabytes = settings.number(name)
    return None if megabytes == UNLIMITED else megabytes * _MEGABYTE
