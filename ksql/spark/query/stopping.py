"""Stops several queries together within seconds, whatever their batches do."""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from ksql.core.process import in_background_or_here

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.spark.query.query_supervisor import QuerySupervisor

SOON_S: Final = 2.0
_INTERRUPT_S: Final = 2.0
_AT_ONCE: Final = 8
_TURN_S: Final = 0.02

_log = logging.getLogger(__name__)


def stop_soon(queries: Iterable[QuerySupervisor], batch_s: float = SOON_S) -> None:
    """Stop the queries, each at the end of its batch if that comes in time; else interrupt it.

    Neither the batch nor what Spark needs to interrupt it is waited for any longer. Few begin in
    the same moment, as each asks Spark much at first. A query that waits delays the next a moment.
    """
    turns = threading.Semaphore(_AT_ONCE)

    def stop(query: QuerySupervisor) -> None:
        try:
            query.stop(timeout_s=batch_s)
        finally:
            turns.release()

    stoppers = []
    for one in queries:
        turns.acquire(timeout=_TURN_S)
        stoppers.append(
            (one.query_id, in_background_or_here(f"stop {one.query_id}", partial(stop, one)))
        )
    deadline = time.monotonic() + batch_s + _INTERRUPT_S
    for query_id, stopper in stoppers:
        if stopper is None:
            continue
        stopper.join(max(deadline - time.monotonic(), 0.0))
        if stopper.is_alive():
            _log.warning("query_still_ending", extra={"query_id": query_id})
