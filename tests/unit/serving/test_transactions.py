"""Whatever is polled when: committed rows are those of whole transactions, also after a kill."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ksql.kafka.admin import StableEnd
from ksql.views.store_writer import PartitionStore, StoreWriter
from ksql.views.stores.rocks import StoreBudget
from ksql.views.stores.store_types import open_store
from tests.examples import examples

PLACE = ("t", 0)


@dataclass
class Topic:
    """Transactions of one writer or two, which may overlap; only decided ones can be read.

    ``log`` has for each offset the transaction and the key of its record, or None for a marker.
    """

    log: list[tuple[int, int] | None] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    number: int = 0

    def write(self, writer: int, key: int) -> None:
        if writer not in self.open:
            self.number += 1
            self.open[writer] = self.number
        self.log.append((self.open[writer], key))

    def commit(self, writer: int) -> None:
        if self.open.pop(writer, None) is not None:
            self.log.append(None)

    def end(self) -> StableEnd:
        first = [
            next(at for at, each in enumerate(self.log) if each and each[0] == number)
            for number in self.open.values()
        ]
        return StableEnd(min(first, default=len(self.log)), quiet=not first)

    def complete(self, rows: dict[bytes, bytes]) -> bool:
        """Whether rows are those of some transactions as a whole, and of all before them."""
        cuts = {
            cut
            for cut in range(len(self.log) + 1)
            if not {e[0] for e in self.log[:cut] if e} & {e[0] for e in self.log[cut:] if e}
        }
        return any(rows == self.rows(cut) for cut in cuts)

    def rows(self, cut: int) -> dict[bytes, bytes]:
        return {b"%d" % each[1]: b"%d" % each[0] for each in self.log[:cut] if each}


@dataclass
class Followed:
    """A store that follows the topic, with a clock of its own; it may be killed."""

    topic: Topic
    folder: Path
    kind: str
    sole: bool
    most_bytes: int
    now: float = 0.0
    at: int = 0

    def start(self) -> None:
        self.store = open_store(self.kind, self.folder / "s", StoreBudget())
        self.part = PartitionStore(place=PLACE, store=self.store, commit_s=1.0, sole=self.sole)
        self.part.resume(0, self.topic.end().offset)
        self.at = self.part.reached
        self.writer = StoreWriter(self.most_bytes, lambda: self.now)
        self.writer.fill([self.part])

    def poll(self, most: int) -> None:
        end = min(self.at + most, self.topic.end().offset, self.writer.stops().get(PLACE, 10**9))
        batch = {
            key: (key, value, 0)
            for each in self.topic.log[self.at : end]
            if each
            for key, value in ((b"%d" % each[1], b"%d" % each[0]),)
        }
        self.at = max(self.at, end)
        self.writer.take({PLACE: batch}, {PLACE: self.at})
        self.writer.aim(self.writer.asks(), {PLACE: self.topic.end()})

    def kill(self) -> None:
        self.store.close()  # which commits nothing
        self.start()

    def check(self) -> None:
        if self.part.shows(committed=True):
            rows = {row.key: row.value for row in self.store.committed().scan()}
            assert self.topic.complete(rows), (rows, self.store.position(), self.topic.log)


WRITERS, KEYS = st.integers(0, 1), st.lists(st.integers(0, 4), min_size=2, max_size=5)
STEPS = st.one_of(
    st.tuples(st.just("write"), WRITERS, KEYS),
    st.tuples(st.just("commit"), WRITERS),
    st.tuples(st.just("transaction"), WRITERS, KEYS),
    st.tuples(st.just("poll"), st.integers(1, 3), st.sampled_from([0.0, 0.2, 1.1])),
    st.tuples(st.just("poll"), st.integers(1, 3), st.sampled_from([0.0, 0.2, 1.1])),
    st.tuples(st.just("kill")),
    st.tuples(st.just("end")),
)


OVERLAPPING = [
    ("write", 0, [0, 1]), ("write", 1, [2, 3]), ("write", 0, [1, 4]), ("commit", 0),
    ("poll", 3, 0.0), ("poll", 3, 1.1), ("poll", 3, 1.1),
]  # fmt: skip


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(STEPS, min_size=4, max_size=40),
    st.sampled_from(["txn_rocksdb", "in_memory"]),
    st.booleans(),
    st.sampled_from([300, 1_000_000]),
)
@example(OVERLAPPING, "in_memory", False, 1_000_000)
def test_committed_rows_are_those_of_whole_transactions(steps, kind, sole, most_bytes):
    with tempfile.TemporaryDirectory() as folder:
        topic = Topic()
        followed = Followed(topic, Path(folder), kind, sole, most_bytes)
        followed.start()
        for step, *more in steps:
            match step, more:
                case "write", [writer, keys]:
                    for key in keys:
                        topic.write(0 if sole else writer, key)
                case "commit", [writer]:
                    topic.commit(0 if sole else writer)
                case "transaction", [writer, keys]:
                    for key in keys:
                        topic.write(0 if sole else writer, key)
                    topic.commit(0 if sole else writer)
                case "poll", [most, seconds]:
                    followed.now = min(followed.now + seconds, 25.0)  # see _QUIET_S
                    followed.poll(most)
                case "kill", _:
                    followed.kill()
                case _:  # the end of a server
                    followed.writer.commit()
                    followed.kill()
            followed.check()
        for writer in (0, 1):
            topic.commit(writer)
        for _ in range(len(topic.log) + 20):
            followed.now += 0.5
            followed.poll(3)
        assert followed.part.shows(committed=True)
        rows = {row.key: row.value for row in followed.store.committed().scan()}
        assert rows == topic.rows(len(topic.log))
        followed.store.close()
