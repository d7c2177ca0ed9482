"""Queries that are stopped together within seconds, whatever their batches do."""

from __future__ import annotations

import logging
import time
from threading import Thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.spark.running import RunningQuery

_SOON_S: Final = 2.0
_INTERRUPT_S: Final = 2.0

_log = logging.getLogger(__name__)


def stop_soon(queries: Iterable[RunningQuery]) -> None:
    """Stop the queries, each at the end of its batch if that comes soon; else it is interrupted.

    Neither the batch nor what Spark needs to interrupt it is waited for any longer.
    """
    stoppers = [
        (query.query_id, Thread(target=query.stop, kwargs={"timeout_s": _SOON_S}, daemon=True))
        for query in queries
    ]
    for _, stopper in stoppers:
        stopper.start()
    deadline = time.monotonic() + _SOON_S + _INTERRUPT_S
    for query_id, stopper in stoppers:
        stopper.join(max(deadline - time.monotonic(), 0.0))
        if stopper.is_alive():
            _log.warning("query_still_ending", extra={"query_id": query_id})
