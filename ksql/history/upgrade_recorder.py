"""Upgrades written into the ledger as they happen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.control.engine import UpgradeHistory
from ksql.control.statements import (
    SwitchPoint,
    UpgradeDescription,
    UpgradeDifference,
    UpgradeReport,
    UpgradeReports,
)
from ksql.core import LONG_S, Durations, Millis, Offset, QueryId, Tally, finished_span
from ksql.history.entries import (
    KnownRebuild,
    KnownUpgrade,
    RecordedUpgrade,
    UpgradeEntry,
    UpgradeId,
    UpgradeOutcome,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.control.engine import Upgrade
    from ksql.core import QueryVersion
    from ksql.exec import DifferenceCounts, Switch
    from ksql.history.resilient import ResilientLedger
    from ksql.sql.upgrade import ReplacementKind

_SAME = "the plan is the same: the query was left alone"
_RESTS = "the query is paused: the new plan runs when it is resumed"
_ENDED = "it was ended by a statement"


class UpgradeMetrics:
    """The replacements that have ended since this server began; for any number of threads."""

    def __init__(self) -> None:
        self.outcomes = Tally()
        """By query id, kind and outcome."""
        self.gaps = Durations(LONG_S)
        """How long neither plan ran, of those that were switched."""
        self.durations = Durations(LONG_S)
        """From the begin to the end, of those that were switched."""

    def ended(self, entry: UpgradeEntry, outcome: UpgradeOutcome) -> None:
        """Count one that was begun."""
        self.outcomes.add(entry.query_id, entry.mode, outcome.status)
        _trace(entry, outcome)
        if outcome.status == "switched":
            self.durations.add(max(outcome.finished_ms - entry.begun_ms, 0) / 1000)
        if outcome.gap_ms is not None:
            self.gaps.add(outcome.gap_ms / 1000)


def _trace(entry: UpgradeEntry, outcome: UpgradeOutcome) -> None:
    attributes: dict[str, str | int] = {
        "query": entry.query_id,
        "replacement.kind": entry.mode,
        "replacement.outcome": outcome.status,
    }
    if outcome.gap_ms is not None:
        attributes["replacement.gap_ms"] = outcome.gap_ms
    error = "" if outcome.status == "switched" else outcome.reason or outcome.status
    finished_span("replacement", (entry.begun_ms, outcome.finished_ms), attributes, error)


class UpgradeRecorder(UpgradeHistory, UpgradeReports):
    """The upgrades in the ledger."""

    def __init__(
        self,
        ledger: ResilientLedger,
        service_id: str,
        now_ms: Callable[[], int],
        known: list[KnownUpgrade],
    ) -> None:
        """Keep ``known`` up to date: what the command topic knows, for a ledger that is lost."""
        self._ledger = ledger
        self._service_id = service_id
        self._now_ms = now_ms
        self._known = known
        self._begun: dict[UpgradeId, UpgradeEntry] = {}
        self.metrics = UpgradeMetrics()
        self._building: dict[QueryVersion, KnownRebuild] = {}

    def begun(self, upgrade: Upgrade) -> UpgradeId:
        entry = self._entry(upgrade)
        upgrade_id = self._ledger.record_upgrade(entry)
        self._begun[upgrade_id] = entry
        return upgrade_id

    def refused(self, upgrade: Upgrade) -> None:
        entry = self._entry(upgrade)
        self._ledger.record_upgrade(entry)
        self.metrics.outcomes.add(entry.query_id, entry.mode, "refused")

    def replayed(self, upgrade: Upgrade) -> None:
        """Note an upgrade of the command topic; ``refill`` writes it if the ledger lacks it."""
        self._known.append(self._entry(upgrade))

    def refill(self) -> None:
        """Add, after the replay, what the command topic knows and the ledger does not.

        What was begun and is not in the topic has not taken place.
        """
        self._ledger.refill(self._known)
        building = [rebuild.id for rebuild in self._building.values()]
        self._ledger.close_begun(self._service_id, Millis(self._now_ms()), building)

    def last(self, query_id: QueryId, since: int = -1) -> UpgradeReport | None:
        recorded = self._ledger.upgrades(query_id, service_id=self._service_id)
        switched = (each for each in recorded if each.status == "switched")
        done = next((each for each in switched if (each.entry.command_offset or 0) >= since), None)
        if done is None or done.outcome is None:
            return None
        entry, outcome = done.entry, done.outcome
        return UpgradeReport(
            accepted=entry.accepted,
            classes=entry.classes,
            traits=entry.traits,
            guarantees=entry.guarantees,
            changes=entry.changes,
            inherited=entry.inherited,
            query_id=query_id,
            switch=SwitchPoint(outcome.batch_id, outcome.offsets or {}, outcome.gap_ms),
        )

    def upgrades(self, query_id: QueryId | None) -> tuple[UpgradeDescription, ...] | None:
        recorded = self._ledger.recorded(query_id, service_id=self._service_id)
        return None if recorded is None else tuple(map(_described, recorded))

    def upgrade(self, upgrade_id: str) -> UpgradeDescription | None:
        recorded = self._ledger.upgrade(UpgradeId(upgrade_id))
        known = recorded is not None and recorded.entry.service_id == self._service_id
        return _described(recorded) if known and recorded is not None else None

    def _entry(self, upgrade: Upgrade) -> UpgradeEntry:
        old, verdict = upgrade.old, upgrade.verdict
        return UpgradeEntry(
            service_id=self._service_id,
            query_id=old.id,
            sink=old.sink,
            statement_old=old.statement,
            statement_new=upgrade.statement,
            plan_old=old.plan,
            plan_new=upgrade.plan,
            classes=verdict.classes,
            traits=verdict.traits,
            guarantees=verdict.guarantees,
            changes=verdict.changes,
            inherited=verdict.inherited,
            accepted=verdict.accepted,
            reasons=verdict.reasons,
            command_offset=None if upgrade.offset is None else Offset(upgrade.offset),
            begun_ms=Millis(self._now_ms()),
            mode=upgrade.mode,
            user=upgrade.user,
        )

    def moved(self, token: object, offset: int) -> None:
        upgrade_id = UpgradeId(str(token))
        self._begun[upgrade_id] = replace(self._begun[upgrade_id], command_offset=Offset(offset))

    def switched(self, token: object, switch: Switch | None) -> None:
        upgrade_id = UpgradeId(str(token))
        entry = self._begun.pop(upgrade_id)
        self._known.append(entry)
        now = Millis(self._now_ms())
        if switch is None:
            same = entry.plan_new == entry.plan_old
            outcome = UpgradeOutcome("switched", now, reason=_SAME if same else _RESTS)
        else:
            outcome = replace(_outcome(switch, now), command_offset=entry.command_offset)
        self._ledger.finish_upgrade(upgrade_id, outcome)
        self.metrics.ended(entry, outcome)

    def rolled_back(self, token: object, error: str) -> None:
        upgrade_id = UpgradeId(str(token))
        entry = self._begun.pop(upgrade_id)
        now = Millis(self._now_ms())
        outcome = UpgradeOutcome("rolled_back", now, reason=error)
        self._ledger.finish_upgrade(upgrade_id, outcome)
        self.metrics.ended(entry, outcome)

    # --- rebuilds ---

    def rebuild_begun(
        self, upgrade: Upgrade, candidate: QueryVersion, *, rollback: bool = False
    ) -> None:
        self.rebuild_replayed(upgrade, candidate, rollback=rollback)
        rebuild = self._building[candidate]
        self._ledger.record_upgrade(rebuild.entry, rebuild.id)

    def rebuilt(self, candidate: QueryVersion, switch: Switch | None) -> None:
        now = Millis(self._now_ms())
        outcome = UpgradeOutcome("switched", now) if switch is None else _outcome(switch, now)
        if switch is not None and switch.left:
            outcome = replace(outcome, reason="\n".join((switch.left, outcome.reason)).strip())
        self._end(candidate, outcome)

    def cut_over_written(self, version: QueryVersion, difference: DifferenceCounts) -> None:
        """Take the rows of a version's last cut-over: after a restart its end lacks them."""
        self._ledger.add_difference(self._service_id, version, difference)

    def rebuild_ended(self, candidate: QueryVersion, reason: str) -> None:
        now = Millis(self._now_ms())
        self._end(candidate, UpgradeOutcome("aborted", now, reason=reason))

    def rebuild_replayed(
        self, upgrade: Upgrade, candidate: QueryVersion, *, rollback: bool = False
    ) -> None:
        """Note a rebuild of the command topic; ``refill`` writes it if the ledger lacks it."""
        entry = replace(
            self._entry(upgrade),
            mode=_mode(upgrade, rollback=rollback),
            candidate=candidate.number,
            accepted=True,
        )
        offset = upgrade.offset if rollback else None
        upgrade_id = UpgradeId(candidate.upgrade_id(self._service_id, offset))
        rebuild = KnownRebuild(upgrade_id, entry)
        self._building[candidate] = rebuild
        self._known.append(rebuild)

    def rebuild_end_replayed(self, candidate: QueryVersion, *, switched: bool) -> None:
        now = Millis(self._now_ms())
        if switched:
            self._close(candidate, UpgradeOutcome("switched", now))
        else:
            self._close(candidate, UpgradeOutcome("aborted", now, reason=_ENDED))

    def _end(self, candidate: QueryVersion, outcome: UpgradeOutcome) -> None:
        rebuild = self._close(candidate, outcome)
        if rebuild is not None:
            self._ledger.finish_upgrade(rebuild.id, outcome)
            self.metrics.ended(rebuild.entry, outcome)

    def _close(self, candidate: QueryVersion, outcome: UpgradeOutcome) -> KnownRebuild | None:
        """Note the end of a rebuild; one that is not known was recorded by another server."""
        rebuild = self._building.pop(candidate, None)
        if rebuild is not None:
            self._known[self._known.index(rebuild)] = replace(rebuild, outcome=outcome)
        return rebuild


def _mode(upgrade: Upgrade, *, rollback: bool) -> ReplacementKind:
    if rollback:
        return "rollback"
    return "rebuild" if upgrade.mode == "in_place" else upgrade.mode


def _outcome(switch: Switch, now: Millis) -> UpgradeOutcome:
    offsets = {
        topic: {str(partition): offset for partition, offset in parts.items()}
        for topic, parts in switch.offsets.items()
    }
    return UpgradeOutcome(
        "switched",
        now,
        switch.batch,
        offsets,
        switch.gap_ms,
        reason=switch.problem,
        difference=switch.difference,
    )


def _described(recorded: RecordedUpgrade) -> UpgradeDescription:
    entry, outcome = recorded.entry, recorded.outcome
    difference = None if outcome is None else outcome.difference
    return UpgradeDescription(
        id=recorded.id,
        query_id=entry.query_id,
        source=entry.sink,
        mode=entry.mode,
        classes=entry.classes,
        status=recorded.status,
        user=entry.user or None,
        begun=entry.begun_ms,
        finished=None if outcome is None else outcome.finished_ms,
        gap_ms=None if outcome is None else outcome.gap_ms,
        former_statement=entry.statement_old,
        statement=entry.statement_new,
        traits=entry.traits,
        changes=entry.changes,
        reasons=entry.reasons,
        inherited=entry.inherited,
        guarantees=entry.guarantees,
        offsets=(None if outcome is None else outcome.offsets) or {},
        difference=None if difference is None else UpgradeDifference(*difference),
        outcome="" if outcome is None else outcome.reason,
        restored=recorded.rebuilt,
    )
