"""Whether a chain gives the same in all batches, in order, and loses nothing."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.chains.cases import Chain, disorder
from tests.chains.chance import chain_of
from tests.chains.run import Running, Topics, planned, run
from tests.cuts.cases import Event, Record, merged
from tests.tally import Tally

LIVE, CUT, BACKLOG, RELOADED = "one by one", "cut", "backlog", "loaded anew"

HOPS = 4
"""In how many hopping windows a record is."""
KEYLESS = "a grouping or joining expression is NULL"


class Wrong(AssertionError):
    """A chain's results depend on its batches, are out of order, or are lost."""


def check(seed: int, tally: Tally) -> None:
    """Run the chain of a seed in all its batches.

    Raises: Wrong, with all that is wrong about it.
    """
    chain = chain_of(seed)
    queries = planned(chain)
    tally.runs += 1
    tally.shapes.update(link.shape for link in chain.links)
    wrong, reference = [], None
    for name, batches in ways(chain, random.Random(seed)):
        topics, running = run(chain, queries, batches, reloaded=name == RELOADED)
        tally.batches += len(batches)
        contents = held(chain, topics)
        if reference is None:
            reference = contents
            tally.results += sum(map(len, contents.values()))
        wrong += [f"{name}: {each}" for each in out_of_order(chain, topics, running, name)]
        wrong += [f"{name}: {each}" for each in lost(running)]
        wrong += [f"{name}: {each}" for each in incomplete(chain, topics, running)]
        wrong += [f"{name}: {each}" for each in differences(reference, contents)]
    if wrong:
        raise Wrong("\n".join([f"seed {seed}", *chain.statements, *wrong]))


def ways(chain: Chain, chance: random.Random) -> Iterator[tuple[str, list[list[Event]]]]:
    """The batches in which the sources' records come, each way with its name."""
    events = merged(chain.events, [source.name for source in chain.sources])
    yield LIVE, [[event] for event in events]
    yield CUT, cut(events, chance, chance.randint(2, 12))
    yield BACKLOG, [events]
    yield RELOADED, cut(events, chance, 3)


def cut(events: Sequence[Event], chance: random.Random, parts: int) -> list[list[Event]]:
    """The events in so many parts, in their order."""
    return cut_at(events, sorted(chance.sample(range(1, len(events)), parts - 1)))


def cut_at(events: Sequence[Event], ends: Sequence[int]) -> list[list[Event]]:
    """The events in the parts that end there."""
    return [list(events[a:b]) for a, b in zip([0, *ends], [*ends, len(events)], strict=True)]


# --- what is judged

Contents = Mapping[str, Mapping[Any, Any]]


def held(chain: Chain, topics: Topics) -> Contents:
    """What each result holds: a stream's records, and how many are alike, or a table's rows."""
    contents_by_name: dict[str, Mapping[Any, Any]] = {}
    for link in chain.links:
        records = [each for some in topics.of(link.sink).values() for each in some]
        contents_by_name[link.sink] = (
            rows_of(records) if is_table(link.text) else Counter(map(_whole, records))
        )
    return contents_by_name


def is_table(text: str) -> bool:
    """Whether the statement makes a table."""
    return text.startswith("CREATE TABLE")


def rows_of(records: Sequence[Record]) -> Mapping[bytes | None, bytes]:
    """The last value of each key, which has the bounds of a window in it."""
    rows = {record.key_bytes: record.value_bytes for record in records}
    return {key: value for key, value in rows.items() if value is not None}


def _whole(record: Record) -> tuple[bytes | None, bytes | None, int]:
    return record.key_bytes, record.value_bytes, record.timestamp


def differences(one: Contents, other: Contents) -> Iterator[str]:
    """How the results differ from those of the first way."""
    for sink, rows in one.items():
        theirs = other[sink]
        differing = [key for key in {**rows, **theirs} if rows.get(key) != theirs.get(key)]
        if differing:
            key = differing[0]
            yield (
                f"{sink} differs in {len(differing)} of {len(rows)} rows: "
                f"{key!r} is {theirs.get(key)!r}, was {rows.get(key)!r}"
            )


def lost(running: Sequence[Running]) -> Iterator[str]:
    """What the processing logs have: no record of a chain is late or broken, some lack a key."""
    for each in running:
        errors = [error for error in each.results.errors if error[1] != KEYLESS]
        if errors:
            yield f"{each.query.id} has {len(errors)} errors, the first: {errors[0]}"


def incomplete(chain: Chain, topics: Topics, running: Sequence[Running]) -> Iterator[str]:
    """The tables whose counts do not add up to the records that they were to count.

    Windows that are still open have no last result, so that only other results are counted.
    """
    for link, each in zip(chain.links, running, strict=True):
        if link.shape not in ("grouped", "window") or "EMIT FINAL" in link.text:
            continue
        [topic] = each.program.topics
        read = sum(map(len, topics.of(topic).values())) - len(each.results.errors)
        records = [record for some in topics.of(link.sink).values() for record in some]
        counted = sum(json.loads(value)["C"] for value in rows_of(records).values())
        expected = read * (HOPS if "HOPPING" in link.text else 1)
        if counted != expected:
            yield f"{link.sink} counts {counted} records, not {expected}"


def out_of_order(
    chain: Chain, topics: Topics, running: Sequence[Running], way: str
) -> Iterator[str]:
    """The streams with a record further behind than any of the sources' records.

    In one backlog none is further behind than in what its own query reads. Live, a record comes by
    the turn that it had in the source, and its partition need not have what was before it there.
    """
    sources = max(map(partition_disorder, _partitions(topics, [s.name for s in chain.sources])))
    for link, each in zip(chain.links, running, strict=True):
        if not link.ordered or (link.mixed and way != BACKLOG):
            continue
        inputs = _partitions(topics, each.program.topics) if way == BACKLOG else []
        allowed = max(map(partition_disorder, inputs), default=0) if inputs else sources
        for partition, records in topics.of(link.sink).items():
            behind, place = disorder(record.timestamp for record in records)
            if behind > allowed:
                worst = f"{place}: {_whole(records[place])}"
                yield f"{link.sink}/{partition} is {behind} ms behind, not {allowed}, at {worst}"


def _partitions(topics: Topics, names: Iterable[str]) -> list[list[Record]]:
    return [records for name in names for records in topics.of(name).values()]


def partition_disorder(records: Sequence[Record]) -> int:
    """How far a record of a partition is behind one before it, in milliseconds."""
    return disorder(record.timestamp for record in records)[0]
