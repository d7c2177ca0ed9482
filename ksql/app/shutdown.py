"""The end of a service: everything is closed in order, and nothing may hold that up."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from ksql.core import KsqlError
from ksql.core.process import call_within

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.cluster import GroupMembers
    from ksql.kafka.embedded import EmbeddedBroker
    from ksql.spark.session import SparkRuntime

    Closer = Callable[[], object]

_log = logging.getLogger(__name__)
_STOP_S = 4.0
_SHARED_STOP_S = 90.0
_PROCESS_STOP_S = 5.0
_LEAST_S = 0.3
WITHDRAWAL_S = 1.0
_TAKEN_OVER_S = 2.5
"""The others look once a second who is there, and begin to fill the stores that come to them."""


def end(
    closers: list[Closer],
    runtime: SparkRuntime | None,
    broker: EmbeddedBroker | None,
    *,
    shared: bool,
) -> None:
    """Close everything, the last one first, and end the processes; the very first one comes last.

    Spark ends before the broker, which it may still be writing to. A process that does not end is
    killed.
    ``shared``: Spark keeps running for other services, so that batches must be finished.
    """
    if runtime is not None:
        runtime.begin_end()
    first, rest = closers[:1], closers[1:]
    calm = close_all(rest, _SHARED_STOP_S if shared else _STOP_S)
    if runtime is not None and not (calm and close_all([runtime.close], _PROCESS_STOP_S)):
        runtime.kill()
    if broker is not None and not close_all([broker.stop], _PROCESS_STOP_S):
        broker.kill()
    close_all(first, _STOP_S)


def hand_over(members: GroupMembers) -> None:
    """Leave the servers of the service, and wait until the others read in this one's place."""
    if len(members.alive()) > 1:
        members.leave(WITHDRAWAL_S)
        time.sleep(_TAKEN_OVER_S)


def close_all(closers: list[Closer], patience_s: float) -> bool:
    """Close them, the last one first, emptying the list.

    What has not ended when the time is over is left to itself, and those after it still get a
    moment each.

    Returns: whether all have ended in time.
    """
    deadline = time.monotonic() + patience_s
    in_time = True
    while closers:
        in_time &= _close(closers.pop(), max(_LEAST_S, deadline - time.monotonic()))
    return in_time


def _close(close: Closer, patience_s: float) -> bool:
    name = getattr(close, "__qualname__", repr(close))
    try:
        ended = call_within(f"stop {name}", close, patience_s)
    except Exception as error:  # noqa: BLE001 - the others must be ended all the same
        reason = error.text() if isinstance(error, KsqlError) else str(error)
        _log.warning("stop_failed", extra={"what": name, "reason": reason})
        _log.debug("stop_failed", exc_info=True)
        return True
    if not ended:
        _log.warning("stop_cut_short", extra={"what": name, "seconds": round(patience_s, 1)})
    return ended
