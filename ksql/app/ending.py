"""The end of a service: everything is closed in order, and nothing may hold that up."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from ksql.base.errors import KsqlError

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)
_LEAST_S = 0.3


def close_all(closers: list[Callable[[], object]], patience_s: float) -> bool:
    """Close them, the last one first, emptying the list.

    What has not ended when the time is over is left to itself, and those behind it still get a
    moment each.

    Returns: whether all have ended in time.
    """
    deadline = time.monotonic() + patience_s
    in_time = True
    while closers:
        in_time &= _close(closers.pop(), max(_LEAST_S, deadline - time.monotonic()))
    return in_time


def _close(close: Callable[[], object], patience_s: float) -> bool:
    name = getattr(close, "__qualname__", repr(close))
    given_up = threading.Event()

    def work() -> None:
        try:
            close()
        except Exception as error:  # noqa: BLE001 - the others must be ended all the same
            if not given_up.is_set():
                reason = error.text() if isinstance(error, KsqlError) else str(error)
                _log.warning("stop_failed", extra={"what": name, "reason": reason})
                _log.debug("stop_failed", exc_info=True)

    thread = threading.Thread(target=work, name=f"stop {name}", daemon=True)
    thread.start()
    thread.join(patience_s)
    if thread.is_alive():
        given_up.set()
        _log.warning("stop_cut_short", extra={"what": name, "seconds": round(patience_s, 1)})
        return False
    return True
