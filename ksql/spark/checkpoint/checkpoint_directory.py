"""The directory of all checkpoints: their paths by version, begin and end of incarnations."""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING, Final

from ksql.core import BeforeFormatZero, KsqlError, QueryVersion
from ksql.exec.dataflow import plan_of
from ksql.spark.checkpoint import cut_over_mark, incarnations, known_commands
from ksql.spark.checkpoint import plan_fingerprint as fingerprint

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ksql.core import Trash
    from ksql.spark.checkpoint.checkpoint import RecoveryOverrides
    from ksql.spark.checkpoint.incarnations import Incarnation
    from ksql.sql.catalog import PersistentQuery
    from ksql.sql.plan import QueryPlan

_log = logging.getLogger(__name__)
_BEGINS: Final = "another query begins under its name"
_UNFIT: Final = (
    incarnations.CheckpointMissing,
    fingerprint.OtherPlan,
    known_commands.CommandLost,
    BeforeFormatZero,
)


class CheckpointDirectory:
    """Begins, continues and ends the incarnations of versions.

    ``new_incarnation`` gives a random name that never comes again, ``end_groups`` deletes consumer
    groups whose incarnation is over, ``trash`` takes the state that no query knows.
    """

    def __init__(
        self,
        directory: Path,
        service_id: str,
        overrides: RecoveryOverrides,
        *,
        trash: Trash,
        new_incarnation: Callable[[], str],
        end_groups: Callable[[re.Pattern[str]], object],
    ) -> None:
        self._directory = directory
        self._service_id = service_id
        self._overrides = overrides
        self._trash = trash
        self._new_incarnation = new_incarnation
        self._end_groups = end_groups

    def use_directory(self, directory: Path) -> None:
        """Have the checkpoints there from now on."""
        self._directory = directory

    def of(self, version: QueryVersion) -> Path:
        """Return the version's own directory."""
        return version.checkpoint(self._directory)

    def application_id(self, version: QueryVersion) -> str:
        """Return the version's name in Kafka in its present incarnation."""
        try:
            incarnation = incarnations.incarnation_of(self.of(version))
        except KsqlError:  # the query itself reports it: it is in ERROR
            incarnation = None
        return version.application_id(self._service_id, incarnation.name if incarnation else "")

    def begin(self, version: QueryVersion, reason: str = _BEGINS) -> Incarnation:
        """Begin an incarnation in an empty directory; what is there is moved aside.

        Raises: OSError.
        """
        directory = self.of(version)
        if incarnations.holds_anything(directory):
            self._trash.take(directory, "checkpoint", reason)
        return incarnations.begin(directory, self._new_incarnation())

    def results_topic(self, version: QueryVersion) -> str:
        """Return the hidden topic of a version's results."""
        return version.results_topic(self._service_id)

    def require(self, query: PersistentQuery, plan: QueryPlan) -> Incarnation:
        """Return the incarnation with which a query of that plan continues.

        Raises: CheckpointMissing, OtherPlan, CommandLost, BeforeFormatZero, unless it may begin
            from the start.
        """
        version = query.version
        directory = self.of(version)
        hidden = self.results_topic(version)
        try:
            incarnation = incarnations.require(query.id, directory)
            fingerprint.adopt(query.id, directory, fingerprint.shape_of(query.id, plan, hidden))
            known_commands.check(query, directory, hidden=plan.sink.topic == hidden)
        except _UNFIT:
            if not self._overrides.start_over(version):
                raise
            incarnation = self._begin_anew(query)
        self._retire_former(query)
        return incarnation

    def note_plan(self, query: PersistentQuery) -> None:
        """Have the checkpoint of a query know its plan, whose command is in the log."""
        directory = self.of(query.version)
        try:
            if incarnations.holds_anything(directory):
                known_commands.note_plan(query, directory)
        except (KsqlError, OSError) as problem:  # a launch reports it
            why = str(problem)
            _log.warning("plan_not_noted", extra={"query_id": query.version.name, "reason": why})

    def _retire_former(self, query: PersistentQuery) -> None:
        """Have the former version's checkpoint know of its cut-over, before a row is changed."""
        if query.cut_over is None:
            return
        former = self.of(QueryVersion(query.id, query.cut_over.former))
        if incarnations.holds_anything(former):
            known_commands.note_cut_over(former, query.cut_over.number)

    def instead_of(self, query: PersistentQuery, unfit: KsqlError) -> Incarnation:
        """Return the incarnation that takes the place of one that does not fit to Kafka.

        Raises: ``unfit``, unless a new one may begin.
        """
        version = query.version
        older = isinstance(unfit, incarnations.OlderCheckpoint)
        if older and self._overrides.older(version):
            _log.warning("query_continues_from_an_older_checkpoint", extra={"query_id": query.id})
            return incarnations.begin(self.of(version), self._new_incarnation())
        if self._overrides.start_over(version):
            return self._begin_anew(query)
        raise unfit

    def _begin_anew(self, query: PersistentQuery) -> Incarnation:
        _log.warning("query_begins_anew", extra={"query_id": query.id})
        incarnation = self.begin(query.version, "its query starts over")
        directory = self.of(query.version)
        hidden = self.results_topic(query.version)
        fingerprint.write(directory, fingerprint.shape_of(query.id, plan_of(query), hidden))
        if query.cut_over is not None:  # its results go to where they belong from the first on
            mark = cut_over_mark.CutOverMark(number=query.cut_over.number, done=True)
            cut_over_mark.write(directory, mark)
        return incarnation

    def end(self, version: QueryVersion) -> None:
        """End an incarnation: delete checkpoint and state, and what Kafka remembers of it."""
        directory = self.of(version)
        try:
            incarnation = incarnations.incarnation_of(directory)
        except KsqlError as error:  # what cannot be read need not be known to be deleted
            _log.warning("groups_left", extra={"query_id": version.name, "reason": error.text()})
            incarnation = None
        shutil.rmtree(directory, ignore_errors=True)
        if incarnation is not None:
            self._end_groups(version.groups(self._service_id, incarnation.name))

    def sweep(self, known: Iterable[QueryVersion]) -> None:
        """Move aside the checkpoints that belong to no version of a query.

        A query that was ended, or not yet written down, just before a crash leaves one. So does
        whatever makes the service forget its queries, and then it is all that is left of them.
        """
        if not self._directory.is_dir():
            return
        kept = {version.name for version in known}
        for left in sorted(self._directory.iterdir()):
            if left.name in kept:
                continue
            try:
                self._sweep_one(left)
            except OSError as problem:  # it is in nobody's way
                _log.warning(
                    "checkpoint_left", extra={"checkpoint": str(left), "reason": str(problem)}
                )

    def _sweep_one(self, left: Path) -> None:
        if not left.is_dir():
            return
        if incarnations.holds_anything(left):
            self._trash.take(left, "checkpoint", "no query of that name is known")
        else:
            left.rmdir()
