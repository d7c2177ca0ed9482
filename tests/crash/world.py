"""Three queries of each kind over sources of their own, and what must have come out of them.

The model is written apart: plain counts and sequences. Every record of a source is ``N`` counted up
per key, so that a lost, doubled or reordered record is seen at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.crash.site import Site
from tests.kafka.records import produce, read_all, topics, unique
from tests.kafka.servers import Refused
from tests.waits import await_true

KEYS = ("k0", "k1", "k2", "k3")
EXACTLY_ONCE = "exactly_once_v2"

Values = Mapping[str, list[Any]]
"""What came out, by key and in order."""


@dataclass(frozen=True)
class Kind:
    """A query's text, and the field of its result that counts up per key."""

    name: str
    entity: str
    field: str
    first: int
    text: str


class World:
    """A service with a stateless, an aggregating and a joining query, and what was sent to them.

    ``version`` is a column of every result: it tells which plan made a record.
    """

    def __init__(self, site: Site, guarantee: str) -> None:
        self.site = site
        self.exactly_once = guarantee == EXACTLY_ONCE
        self.settings = {
            "auto.offset.reset": "earliest",
            "cache.max.bytes.buffering": "0",
            "processing.guarantee": guarantee,
        }
        self.table = unique("T").upper()
        kinds = (
            ("stateless", "STREAM", "N", 0, "SELECT K, N, {version} AS V FROM {source}"),
            (
                "aggregate",
                "TABLE",
                "C",
                1,
                "SELECT K, COUNT(*) AS C, {version} AS V FROM {source} GROUP BY K",
            ),
            (
                "join",
                "STREAM",
                "N",
                0,
                "SELECT S.K AS K, N, {version} AS V, W FROM {source} S "
                f"LEFT JOIN {self.table} T ON S.K = T.K",
            ),
        )
        self.kinds = tuple(Kind(unique(row[0]).upper(), *row[1:]) for row in kinds)
        self.sent: dict[str, int] = defaultdict(int)
        self.version = {kind.name: 1 for kind in self.kinds}

    def source(self, kind: Kind) -> str:
        """The stream, and the topic, that the query reads."""
        return f"{kind.name}_IN"

    def create(self) -> None:
        """Declare the sources, start the queries."""
        http = self.site.http
        http.ksql(
            f"CREATE TABLE {self.table} (K STRING PRIMARY KEY, W STRING) "
            f"WITH (KAFKA_TOPIC='{self.table}', PARTITIONS=2, VALUE_FORMAT='JSON');"
        )
        for part, key in enumerate(KEYS):
            produce(self.site.broker.bootstrap, self.table, [(key, {"W": f"w{key}"})], part % 2)
        for kind in self.kinds:
            http.ksql(
                f"CREATE STREAM {self.source(kind)} (K STRING KEY, N INT) WITH "
                f"(KAFKA_TOPIC='{self.source(kind)}', PARTITIONS=2, VALUE_FORMAT='JSON');"
            )
            http.ksql(self.statement(kind, "CREATE", 1), self.settings)

    def statement(self, kind: Kind, verb: str, version: int) -> str:
        """The text that makes or replaces the query."""
        text = kind.text.format(version=version, source=self.source(kind))
        return f"{verb} {kind.entity} {kind.name} AS {text};"

    def feed(self, kind: Kind, count: int = 3) -> None:
        """More records of every key."""
        before = self.sent[kind.name]
        for part, key in enumerate(KEYS):
            records = [(key, {"N": n}) for n in range(before, before + count)]
            produce(self.site.broker.bootstrap, self.source(kind), records, part % 2)
        self.sent[kind.name] += count

    def outputs(self, topic: str) -> Values:
        """What is in a topic, by key."""
        values_by_sink: dict[str, list[Any]] = defaultdict(list)
        for seen in read_all(self.site.broker.bootstrap, topic):
            values_by_sink[str(seen.key)].append(seen.value)
        return values_by_sink

    def await_complete(self, kind: Kind, sink: str = "") -> Values:
        """The outputs, once the last record of every key has come out.

        Raises: AssertionError if something is lost, doubled or out of order.
        """
        last = self.sent[kind.name] - 1 + kind.first
        seen: list[Values] = []

        def complete() -> bool:
            seen.append(self.outputs(sink or kind.name))
            tails = (seen[-1].get(key) for key in KEYS)
            return all(tail and tail[-1][kind.field] == last for tail in tails)

        try:
            await_true("complete", complete)
        except AssertionError:
            values = {k: [v[kind.field] for v in rows][-8:] for k, rows in seen[-1].items()}
            states = self.site.http.queries()
            raise AssertionError(f"not complete up to {last}: {values}; {states}") from None
        self._check(kind, seen[-1], last)
        return seen[-1]

    def _check(self, kind: Kind, outputs: Values, last: int) -> None:
        expected = list(range(kind.first, last + 1))
        assert set(outputs) == set(KEYS), f"keys {sorted(outputs)}"
        for key, rows in outputs.items():
            values = [row[kind.field] for row in rows]
            if self.exactly_once:
                assert values == expected, f"{key}: {_differences(values, expected)}"
            firsts = list(dict.fromkeys(values))
            assert firsts == expected, f"{key}: {_differences(firsts, expected)}"
            if "W" in rows[0]:
                assert {row["W"] for row in rows} == {f"w{key}"}, f"{key}: {rows[-3:]}"

    def running(self, *, or_paused: bool = False) -> dict[str, str]:
        """Return the states of the queries by id, once all of them run."""
        states = {"RUNNING", "PAUSED"} if or_paused else {"RUNNING"}

        def all_run() -> dict[str, str]:
            try:
                queries = self.site.http.queries()
            except Refused:
                return {}
            return queries if set(queries.values()) <= states else {}

        try:
            return dict(await_true("all queries run", all_run))
        except AssertionError:
            raise AssertionError(f"not running: {self.site.http.queries()}") from None

    def verify(self, kinds: tuple[Kind, ...] = ()) -> None:
        """All that was sent before and three more records of every key came out right.

        What comes out now comes from one plan: the version that the catalog names.
        """
        ids = self.running()
        chosen = kinds or self.kinds
        before: dict[str, dict[str, int]] = {}
        for kind in chosen:
            assert sum(f"_{kind.name}_" in i for i in ids) == 1, ids
            before[kind.name] = self._counts(kind)
            self.feed(kind)
        for kind in chosen:
            made_by = self._makers(kind, before[kind.name])
            assert made_by == {self.version[kind.name]}, (made_by, self.version[kind.name])

    def _counts(self, kind: Kind) -> dict[str, int]:
        return {key: len(rows) for key, rows in self.await_complete(kind).items()}

    def _makers(self, kind: Kind, before: Mapping[str, int]) -> set[int]:
        """The versions of what has come out since."""
        after = self.await_complete(kind)
        return {row["V"] for key in KEYS for row in after[key][before[key] :]}

    def learn_version(self, kind: Kind, possible: set[int]) -> int:
        """Which plan runs after a replacement of unknown end; it must be one of these.

        The sink's last rows tell, after new records were sent.
        """
        self.running()
        before = self._counts(kind)
        self.feed(kind)
        makers = self._makers(kind, before)
        assert len(makers) == 1, f"two plans at once: {makers}"
        assert makers <= possible, (makers, possible)
        self.version[kind.name] = makers.pop()
        return self.version[kind.name]

    def has_source(self, name: str) -> bool:
        """Whether the catalog knows a stream or table of that name."""
        return name in self.names()

    def names(self) -> set[str]:
        """All streams and tables."""
        http = self.site.http
        streams = http.one("SHOW STREAMS;")["streams"]
        return {s["name"] for s in (*streams, *http.one("SHOW TABLES;")["tables"])}

    def has_topic(self, name: str) -> bool:
        """Whether Kafka has it."""
        return name in topics(self.site.broker.bootstrap)


def _differences(values: list[int], expected: list[int]) -> str:
    counts: dict[int, int] = defaultdict(int)
    for value in values:
        counts[value] += 1
    lost = [n for n in expected if not counts[n]]
    doubled = [n for n, count in counts.items() if count > 1]
    order = "" if lost or doubled else f", order {values[-8:]}"
    return f"lost {lost[:8]}, doubled {doubled[:8]}{order}"
