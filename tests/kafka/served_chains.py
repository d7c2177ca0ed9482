"""Chains of ``tests.chains`` on a real service: written, run in several ways, judged."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from ksql.kafka.producers.sender import Sender
from ksql.kafka.settings import KafkaSettings
from tests.chains.cases import Chain
from tests.chains.judge import Contents, differences, held, out_of_order
from tests.chains.making import STREAM
from tests.chains.repeats import again, worse
from tests.chains.run import Running, Topics, planned, run
from tests.cuts.cases import Event, merged
from tests.kafka.killed_server import Site
from tests.kafka.records import unique

NAMES = re.compile(r"\b([TSR]\d)\b")
SLICES = 4
FAILING_MS = 600_000
"""How long a query waits for one that fails, as some do on a machine with too much to do."""


@dataclass
class Served:
    """A chain on a server: the same records and statements under names of its own."""

    seed: int
    chain: Chain
    guarantee: str
    tag: str = field(default_factory=lambda: unique("").upper())
    ids: list[str] = field(default_factory=list)

    def named(self, text: str) -> str:
        """The text with this chain's own names of sources and results."""
        return NAMES.sub(rf"\1{self.tag}", text)

    @property
    def sinks(self) -> list[str]:
        """The topics of the results."""
        return sorted({self.named(link.sink) for link in self.chain.links})

    @property
    def sources(self) -> list[str]:
        """The names of the declared streams and tables, in the generator's words."""
        return [source.name for source in self.chain.sources]

    def properties(self, most: int) -> dict[str, str]:
        """The settings of its queries; a micro-batch has at most so many records."""
        return {
            "auto.offset.reset": "earliest",
            "processing.guarantee": self.guarantee,
            "cache.max.bytes.buffering": "10000000" if self.chain.caching else "0",
            "ksql.query.shuffle.partitions": str(self.chain.buckets),
            "ksql.query.max.records.per.batch": str(most),
            "ksql.query.upstream.wait.max.ms": str(FAILING_MS),
        }

    def declare(self, site: Site) -> None:
        """Declare the sources; their topics are made."""
        site.http.ksql("".join(map(self.named, self.chain.declarations)))

    def create(self, site: Site, most: int) -> None:
        """Make the queries."""
        statements = [self.named(link.text) for link in self.chain.links]
        self.ids = site.create(statements, **self.properties(most))

    def replace(self, site: Site, most: int, chance: random.Random) -> None:
        """Replace one of the queries by another one of the same meaning.

        A stream that other queries write, too, cannot be replaced.
        """
        writers = Counter(link.sink for link in self.chain.links)
        texts = [
            link.text
            for link in self.chain.links
            if link.text.startswith("CREATE") and writers[link.sink] == 1
        ]
        if not texts:
            return
        text = equivalent(chance.choice(texts)).replace("CREATE", "CREATE OR REPLACE", 1)
        answer = site.http.one(self.named(text), self.properties(most))
        assert answer["upgrade"]["accepted"], answer

    def rest(self, site: Site, verb: str) -> None:
        """PAUSE or RESUME all its queries."""
        site.http.ksql("".join(f"{verb} {id_};" for id_ in self.ids))

    def topics(self, site: Site) -> Topics:
        """What lies in all its topics, in the generator's words."""
        topics_ = Topics()
        for source in self.sources:
            topics_.write(event for event in self.chain.events if event.topic == source)
        names = {name: name.removesuffix(self.tag) for name in self.sinks}
        for each in site.records(self.sinks):
            topics_.partitions[names[each.topic], each.partition].append(each)
        return topics_


def equivalent(text: str) -> str:
    """Another statement of the same meaning, where there is a simple one."""
    filtered = text.replace(" WHERE H > 0", " WHERE H > 0 AND H > -1")
    return filtered.replace("COUNT(*)", "COUNT(1)")


def write(site: Site, pieces: Sequence[tuple[Served, Sequence[Event]]]) -> None:
    """Write the events, those of a chain in their order."""
    sender = Sender(KafkaSettings(site.bootstrap))
    try:
        queues = [[(served, event) for event in events] for served, events in pieces]
        for together in zip_longest(*queues):
            for served, event in filter(None, together):
                sender.send(
                    served.named(event.topic),
                    event.key_bytes,
                    event.value_bytes,
                    timestamp=event.timestamp,
                    partition=event.partition,
                )
            sender.flush()  # a later record of a chain is never there before an earlier one
    finally:
        sender.close()


def settle(site: Site, chains: Sequence[Served]) -> None:
    """Wait until all queries are quiet: first those that read sources only, in each chain."""
    levels = zip_longest(*(served.ids for served in chains))
    site.settle([id_ for level in levels for id_ in level if id_ is not None])


def slices(chain: Chain) -> list[list[Event]]:
    """The records as they come live: the first of tables, then all others in parts, by time."""
    events = merged(chain.events, [source.name for source in chain.sources])
    begin = next(place for place, event in enumerate(events) if is_of_stream(event))
    rows, others = events[:begin], events[begin:]
    step = -(-len(others) // SLICES)
    return [rows, *(others[at : at + step] for at in range(0, len(others), step))]


def is_of_stream(event: Event) -> bool:
    """Whether it is a stream's record."""
    return event.topic.startswith(STREAM[0])


def depends_on_batches(chain: Chain) -> bool:
    """Whether what is read first decides about a result: streams meet, or a table changes."""
    later = (event for part in slices(chain)[1:] for event in part)
    changes = not all(map(is_of_stream, later))
    return changes or any(link.shape == "paired" for link in chain.links)


# --- what is judged


def wrong(served: Served, site: Site, way: str, repeats: bool = False) -> Iterator[str]:
    """What is wrong about a chain's results.

    One batch in memory is what they must equal. ``way`` says how orderly streams must be. Where
    ``repeats`` are allowed, results may stand in a stream again, and are counted again.
    """
    chain, topics_ = served.chain, served.topics(site)
    expected, running = in_one_batch(chain)
    contents = held(chain, topics_)
    if repeats and again(expected, contents):
        yield from worse(chain, expected, contents)
        return
    yield from differences(expected, contents)
    yield from out_of_order(chain, topics_, running, way)


def in_one_batch(chain: Chain) -> tuple[Contents, list[Running]]:
    """What the chain gives in memory, where all records are one batch."""
    events = merged(chain.events, [source.name for source in chain.sources])
    topics, running = run(chain, planned(chain), [events])
    return held(chain, topics), running
