"""Ends rebuilds before they fill the disk: the running queries need room, too."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ksql.control.engine.rebuild_progress import LEAST_FREE
from ksql.core.process import PeriodicWorker, RepeatedFailure

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.control.engine.engine import Engine
    from ksql.core import Settings
    from ksql.sql.catalog import Rebuild

_log = logging.getLogger(__name__)
_TURN_S: Final = 0.2


class RoomWatch:
    """The watch of one server; it acts only while that one leads.

    It has a thread of its own, as a cut-over may take minutes. Of several rebuilds it ends the one
    that was begun last, and looks again. A rollback is left alone: its state is there already, and
    stays if it is ended.
    """

    def __init__(self, engine: Engine, settings: Settings, leads: Callable[[], bool]) -> None:
        self._engine = engine
        self._settings = settings
        self._leads = leads
        self._worker = PeriodicWorker(
            "room", _TURN_S, self.step, RepeatedFailure(_log, "room_not_looked_at", (OSError,))
        )

    def start(self) -> None:
        """Look at the disks some times a second from now on."""
        self._worker.start()

    def close(self) -> None:
        """Look no more."""
        self._worker.end()

    def step(self) -> None:
        """End one rebuild whose disk has less room than must stay free, if there is one.

        Raises: OSError, KsqlError.
        """
        if not self._leads():
            return
        latest = sorted(self._engine.catalog.rebuilds.values(), key=_begun, reverse=True)
        for rebuild in latest:
            if not rebuild.rollback and self._lacks_room(rebuild):
                return

    def _lacks_room(self, rebuild: Rebuild) -> bool:
        """End a rebuild if its disk has too little room; return whether it had."""
        least = self._settings.number(LEAST_FREE)
        version = rebuild.candidate.version
        free = self._engine.runner.free_bytes(version)
        if free is None or free >= least:
            return False
        why = (
            f"The disk of its state had {free:,} bytes left; at least {least:,} must stay free "
            f"({LEAST_FREE})."
        )
        _log.warning("rebuild_ended", extra={"query": version.name, "why": why})
        self._engine.end_rebuild(version.query_id, why, self._settings)
        return True


def _begun(rebuild: Rebuild) -> int:
    return rebuild.candidate.offset
