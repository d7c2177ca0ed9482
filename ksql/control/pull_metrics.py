"""Counts of the pull queries that a server has answered, by table.

A query that reads several replicas reads each at a server. As in ksqlDB each such read of one
server is a request of its own. It is *local* at the server that was asked and *remote* at another
one.

Source: ksqlDB's metrics ``pull-query-requests-*``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

_MOST: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PullMetrics:
    """The pull queries of a table or stream since the server began.

    ``failed`` are among ``total``. ``local`` and ``remote`` count reads at this server and others.
    """

    total: int = 0
    failed: int = 0
    local: int = 0
    remote: int = 0
    last_ms: int = 0


@dataclass(frozen=True, slots=True)
class BySite:
    """At how many servers a table was read: at this one or not, and at how many others."""

    local: int = 0
    remote: int = 0


class PullCounter:
    """The counts of one server; for any number of threads."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._pulls: OrderedDict[str, PullMetrics] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, names: Iterable[str], sites: Mapping[str, BySite], *, failed: bool) -> None:
        """Count a query that has ended, for each of its tables and streams."""
        now_ms = self._now_ms()
        with self._lock:
            for name in names:
                before, at = self._pulls.get(name, PullMetrics()), sites.get(name, BySite())
                self._pulls[name] = replace(
                    before,
                    total=before.total + 1,
                    failed=before.failed + failed,
                    local=before.local + at.local,
                    remote=before.remote + at.remote,
                    last_ms=now_ms,
                )
                self._pulls.move_to_end(name)
            while len(self._pulls) > _MOST:
                self._pulls.popitem(last=False)

    def all(self) -> Mapping[str, PullMetrics]:
        """Return the counts by table or stream."""
        with self._lock:
            return dict(self._pulls)

    def of(self, name: str) -> PullMetrics:
        """Return the counts of a table or stream."""
        with self._lock:
            return self._pulls.get(name, PullMetrics())
