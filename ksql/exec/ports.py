"""Protocols of what runs queries and of topics: Spark and Kafka in the service, memory in tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from ksql.core import QueryVersion
    from ksql.sql.catalog import PersistentQuery, Topic


HALF_WRITTEN: Final = "ksql.query.replace.half.written.batch.enabled"
"""The setting that allows a new plan to run a batch of which the old one has written a part."""


LEFT_BEHIND: Final = (
    "The former version was ended where it was, as it did not come to the position of the new one: "
    "{problem}"
)
"""What a switch has to say if a running version was left behind."""


class Topics(Protocol):
    """Kafka's topics."""

    def describe(self, name: str) -> Topic | None:
        """Return the topic, or None."""

    def identity(self, name: str) -> str:
        """Return the mark that a later topic of that name does not have; empty if there is none."""

    def lost(self, name: str) -> int:
        """Return how many records the topic has had at its beginning and does not hold any more."""

    def create(self, topic: Topic) -> bool:
        """Create it; False: it existed already, which is fine."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete them; unknown ones are fine."""


class DifferenceCounts(NamedTuple):
    """The rows that a cut-over has written, removed and left as they were."""

    changed: int
    added: int
    removed: int
    equal: int


@dataclass(frozen=True, slots=True)
class Switch:
    """Where an old plan ended and the new one began; offsets are per topic and partition.

    ``left`` says what it means that the new plan runs a batch which the old one could not finish.
    Of a rebuild it says why the running version was left behind.
    ``problem`` says why the new plan's first batch failed. Both are usually empty. ``difference``
    is that of a table's cut-over, once it is written.
    """

    batch: int
    offsets: Mapping[str, Mapping[int, int]]
    gap_ms: int = 0
    left: str = ""
    problem: str = ""
    difference: DifferenceCounts | None = None


class FirstBatch(NamedTuple):
    """How a new plan began: for how long no plan ran, and why its first batch failed, if so.

    ``difference`` is that of a table's cut-over, if it is written.
    """

    gap_ms: int
    problem: str = ""
    difference: DifferenceCounts | None = None


class BuildProgress(NamedTuple):
    """How far a version has read; offsets per topic and partition.

    ``begin`` is the first offset that it could read, ``position`` the next that it reads, ``ends``
    where its topics end. ``problem`` says why it does not run; empty if it does. ``batch_rate`` is
    the speed of its largest batch since this server began, in records per second. It is 0 if all
    were small. ``record_bytes`` is the size of a record of its last batch; 0 if it is not known.
    ``free_bytes`` is the room for its state; None if it is not known.
    """

    begin: Mapping[str, Mapping[int, int]]
    position: Mapping[str, Mapping[int, int]]
    ends: Mapping[str, Mapping[int, int]]
    records_per_second: float = 0.0
    state_bytes: int = 0
    problem: str = ""
    batch_rate: float = 0.0
    record_bytes: float = 0.0
    free_bytes: int | None = None


AwaitFirst = Callable[[float], FirstBatch]
"""Waits for a new plan's first batch, so many seconds at most."""


class Runner(Protocol):
    """Runs versions of persistent queries; several of one query run side by side.

    Every method blocks until it is done. They are called by one thread at a time, but for
    ``prepare_switch``, ``rollback_switch`` and ``await_first_attempt``. During these, others may be
    called, and ``stop`` and ``stop_soon`` of the same version end what they do.
    """

    def start(self, query: PersistentQuery) -> None:
        """Start a version that is new; what an earlier one of its name has left does not count.

        Raises: KsqlError if it cannot be started; nothing runs then.
        """

    def resume(self, queries: Iterable[PersistentQuery]) -> None:
        """Let queries continue from their checkpoints; those that cannot start are tried again.

        A query that runs already is left alone; one that rests after a failure is tried at once.
        A checkpoint that is missing is an error of its query, and no new beginning.
        """

    def resume_async(self, queries: Iterable[PersistentQuery]) -> None:
        """Begin with that, without waiting for it."""

    def await_first_attempt(self, versions: Iterable[QueryVersion]) -> None:
        """Wait some seconds, at most until each of them was tried once."""

    def stop(self, version: QueryVersion) -> None:
        """Stop at a batch boundary; the checkpoint stays. Unknown versions are fine."""

    def stop_soon(self, versions: Iterable[QueryVersion], batch_s: float = 2.0) -> None:
        """Stop all of them, at once; ``resume`` repeats a batch that takes longer than that."""

    def forget(self, version: QueryVersion) -> None:
        """Delete what a version that ended has left: checkpoint and state."""

    def prepare_switch(
        self, old: PersistentQuery, new: PersistentQuery, *, half_written: bool = False
    ) -> Switch:
        """Try the new plan without any effect, then end the old one between two batches.

        Both are plans of one version: the new one continues with the old one's checkpoint. Nothing
        runs afterwards, until ``commit_switch`` or ``rollback_switch``. ``half_written`` allows
        that the new plan runs a batch of which the old one has written a part that counts.

        Raises: KsqlError; the old plan continues then, or is tried again until it does.
        """

    def commit_switch(self, new: PersistentQuery) -> AwaitFirst:
        """Start the new plan: the log names it now.

        It returns at once. A plan that fails is in ERROR and is tried again, as any other.
        """

    def rollback_switch(self, old: PersistentQuery) -> None:
        """Let the old plan continue: the log does not name the new one."""

    def check_replaceable(self, paused: PersistentQuery, *, half_written: bool = False) -> str:
        """Check that a query that rests may get another plan.

        Returns: what it means that a batch was left half done; empty if none was.
        Raises: KsqlError if another plan must not run that batch.
        """

    def progress(self, version: QueryVersion) -> BuildProgress | None:
        """Return how far a version has read; None if it does not run here."""

    def free_bytes(self, version: QueryVersion) -> int | None:
        """Return the room on the disk of a version's state; None if it is not known.

        Raises: OSError.
        """

    def check_former(self, query: PersistentQuery) -> None:
        """Look whether the former version of a query can continue from the rows that it had.

        Raises: KsqlError as long as its last cut-over has not kept them.
        """

    def stop_at_same_offsets(
        self, old: PersistentQuery, candidate: PersistentQuery, *, may_leave: bool = True
    ) -> Switch:
        """Bring the running version and its candidate to one position, and end both there.

        Both have read the same records then. Nothing of either runs afterwards, until ``cut_over``
        or ``resume_both``. The running version of a table may fail, or its batch may not end. Then
        it is left behind: ended where it is. Without ``may_leave`` it never is.

        Raises: KsqlError; both continue then.
        """

    def backfill(self, old: PersistentQuery, candidate: PersistentQuery) -> None:
        """Give a candidate the state of the aggregates that it has in common with the old version.

        It is called for versions that ended at the same offsets, and may be called again after
        that. The candidate's own topic has the rows of the whole state then. Rows of which no state
        knows any more are there as in the result's topic.

        Raises: KsqlError; ``resume_both`` lets both continue then.
        """

    def resume_both(self, old: PersistentQuery, candidate: PersistentQuery) -> None:
        """Let both continue, as they were not cut over after all."""

    def cut_over(self, old: PersistentQuery, new: PersistentQuery) -> AwaitFirst:
        """Start the candidate's version as the query: the log names it now.

        Before it runs, the difference between its rows and those in the result's topic is written.
        It returns at once. A failure is tried again, as at any other start. The old version rests:
        its checkpoint is kept.
        """
