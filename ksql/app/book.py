"""Upgrades written into the ledger as they happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.base.ids import Millis, Offset, QueryId
from ksql.engine.changes import PutQuery
from ksql.ledger.entries import UpgradeEntry, UpgradeId, UpgradeOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.catalog.model import PersistentQuery
    from ksql.dataflow.ports import Switch
    from ksql.engine.context import Prepared
    from ksql.engine.ports import Command
    from ksql.ledger.resilient import ResilientLedger


class LedgerBook:
    """The engine's ``UpgradeBook`` over the ledger."""

    def __init__(
        self,
        ledger: ResilientLedger,
        service_id: str,
        now_ms: Callable[[], int],
        running: Callable[[str], PersistentQuery | None],
    ) -> None:
        """``running`` gives the query that still runs under an id."""
        self._ledger = ledger
        self._service_id = service_id
        self._now_ms = now_ms
        self._running = running

    def begun(self, prepared: Prepared, command: Command, offset: int) -> UpgradeId | None:
        """An upgrade starts."""
        new = next(c.query for c in command.changes if isinstance(c, PutQuery))
        old = self._running(new.id)
        if prepared.verdict is None or old is None:
            return None
        return self._ledger.record_upgrade(
            UpgradeEntry.of(
                prepared.verdict,
                service_id=self._service_id,
                query_id=QueryId(new.id),
                sink=new.sink,
                statements=(old.statement, new.statement),
                plans=(old.plan, new.plan),
                command_offset=Offset(offset),
                begun_ms=Millis(self._now_ms()),
            )
        )

    def finished(self, token: object, switch: Switch | None, error: str | None) -> None:
        """It has ended."""
        if token is None:
            return
        offsets = None
        if switch is not None:
            offsets = {
                topic: {str(p): offset for p, offset in parts.items()}
                for topic, parts in switch.offsets.items()
            }
        outcome = UpgradeOutcome(
            "switched" if switch else "rolled_back",
            Millis(self._now_ms()),
            switch.batch if switch else None,
            offsets,
            switch.gap_ms if switch else None,
            error or "",
        )
        self._ledger.finish_upgrade(UpgradeId(str(token)), outcome)
