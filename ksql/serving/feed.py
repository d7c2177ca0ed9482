"""Raw records for push queries: the feed's interface, one that reads Kafka by itself, a guard.

A push query reads for days. Without the guard, it would outlive the rights that it was admitted by.

Its client may read slowly, or stop. Kafka's client would then keep 64 MiB of each such query; a
feed lets it fetch little ahead.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from ksql.kafka import OffsetsGone, Reader

if TYPE_CHECKING:
    from ksql.core import KsqlError, RawRecord
    from ksql.kafka import KafkaSettings

_POLL_S = 0.25
_BATCH_BYTES: Final = 1 << 20
_LITTLE: Final[Mapping[str, str | float | bool]] = {
    "queued.max.messages.kbytes": 2048,  # one fetch is no larger then
    "fetch.queue.backoff.ms": 50,  # after a second by default, a reader would wait for records
}

Offsets = Mapping[tuple[str, int], int]
"""By topic and partition."""


class Feed(Protocol):
    """Records as they come; one thread reads, any may close."""

    @property
    def positions(self) -> Offsets:
        """The next offset of every partition."""

    @property
    def open(self) -> bool:
        """Whether there may be more to read."""

    def poll(self) -> Sequence[RawRecord]:
        """Return the records that are there; wait a moment for the next ones."""

    def pause(self, places: Collection[tuple[str, int]]) -> None:
        """Read no more of these partitions, until another call leaves them out."""

    def end(self) -> None:
        """Let the reading thread come to an end by itself."""

    def close(self) -> None:
        """End it; idempotent."""


Feeds = Callable[[Offsets, Callable[[], None]], Feed]
"""Makes a feed that begins at these offsets and calls that when it is closed."""


@contextmanager
def released(feed: Feed) -> Iterator[None]:
    """Close a feed with its reader; end it only, if the reader is a generator that is left.

    Such a generator may end in the event loop, and to close waits for Kafka's client. Its reader
    closes the query.
    """
    is_left = False
    try:
        yield
    except GeneratorExit:
        is_left = True
        raise
    finally:
        if is_left:
            feed.end()
        else:
            feed.close()


class TopicFeed:
    """An iterator of arriving records, until it is closed.

    A client that disconnects ends nothing by itself: a thread that waits for rows does not notice.
    So closing releases the reader, whether or not another read follows.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        start: Offsets,
        on_end: Callable[[], None] = lambda: None,
        explain: Callable[[OffsetsGone], KsqlError] = lambda problem: problem,
    ) -> None:
        """Take ``explain``: it gives what ``poll`` raises if offsets to read do not exist."""
        self._reader = Reader(settings, **_LITTLE)
        self._explain = explain
        try:
            self._reader.assign(start)
        except BaseException:
            self._reader.close()
            raise
        self._on_end = on_end
        self._ending = threading.Event()
        self._reading = threading.Lock()
        self._released = False
        self._problem: KsqlError | None = None

    @property
    def positions(self) -> Offsets:
        return self._reader.positions

    @property
    def open(self) -> bool:
        return not self._ending.is_set()

    def poll(self) -> list[RawRecord]:
        """Return the records that arrive within a quarter of a second; none once it is closed.

        Raises: what it has failed with, and what ``Reader.poll`` does.
        """
        if self._problem is not None:
            raise self._problem
        with self._reading:
            try:
                if self._released:
                    return []
                return self._reader.poll(timeout_s=_POLL_S, most_bytes=_BATCH_BYTES)
            except OffsetsGone as problem:
                raise self._explain(problem) from problem

    def pause(self, places: Collection[tuple[str, int]]) -> None:
        with self._reading:
            if not self._released:
                self._reader.pause(places)

    def end(self) -> None:
        self._ending.set()

    def fail(self, problem: KsqlError) -> None:
        """Have the next poll raise that."""
        self._problem = problem

    def close(self) -> None:
        """End it and release the reader; waits for a poll that runs. Idempotent."""
        self.end()
        with self._reading:
            if self._released:
                return
            self._released = True
            try:
                self._reader.close()
            finally:
                self._on_end()


AGAIN_S: Final = 1.0
"""How long a right that has ended may still be used."""


class GuardedFeed:
    """Another feed; ``check`` raises once its reader may read no more."""

    def __init__(
        self, feed: Feed, check: Callable[[], None], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._feed = feed
        self._check = check
        self._now_s = now_s
        self._checked_s = now_s()

    @property
    def positions(self) -> Offsets:
        return self._feed.positions

    @property
    def open(self) -> bool:
        return self._feed.open

    def poll(self) -> Sequence[RawRecord]:
        """See Feed.

        Raises: what the check raises, before any more is read.
        """
        now_s = self._now_s()
        if now_s - self._checked_s >= AGAIN_S:
            self._checked_s = now_s
            self._check()
        return self._feed.poll()

    def pause(self, places: Collection[tuple[str, int]]) -> None:
        self._feed.pause(places)

    def end(self) -> None:
        self._feed.end()

    def close(self) -> None:
        self._feed.close()
