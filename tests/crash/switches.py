"""``python -m tests.crash.switches``: faults at every write of a replacement, judged by rows.

The statement is stopped before each of its effects (files, Kafka, database, registry, Spark), and
the new plan's first batch at each of its own. There the server is killed, a task fails, Spark's JVM
or the broker goes away, the query is paused or ended, its source is altered. Then everything
continues, and the rows of the result are compared with a model.

Plan ``v`` lets a record pass unless ``N % 4 == v % 3``, and writes ``v`` into each row. So a record
that no row shows must have been dropped by a plan, and a row's plan must let it pass. The plans of
a key's records never go back, and the log knows all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.crash.site import Broker, Site
from tests.kafka.records import produce, read_all, unique
from tests.kafka.servers import Refused
from tests.waits import await_true

GUARANTEES = ("at_least_once", "exactly_once_v2")
KINDS = ("stateless", "aggregate", "join")
STATEMENT_FAULTS = ("kill", "pause", "terminate", "alter", "broker", "jvm")
BATCH_FAULTS = ("kill", "fail", "pause", "terminate", "broker", "jvm")
BATCH_POINTS = {
    "exactly_once_v2": ("unbegun", "begun", "uncommitted", "committed"),
    "at_least_once": ("read", "sent", "unacknowledged", "acknowledged"),
}
KEYS = ("k0", "k1", "k2", "k3")
ROUND = 4
TEXTS = {
    "stateless": ("STREAM", "SELECT K, N, {v} AS V FROM {source} WHERE {passes}"),
    "aggregate": (
        "TABLE",
        "SELECT K, COUNT(*) AS C, LATEST_BY_OFFSET(N) AS N, {v} AS V FROM {source} "
        "WHERE {passes} GROUP BY K",
    ),
    "join": (
        "STREAM",
        "SELECT S.K AS K, N, {v} AS V, W FROM {source} S LEFT JOIN {table} T ON S.K = T.K "
        "WHERE {passes}",
    ),
}


def passes(version: int, n: int) -> bool:
    """The filter of a plan; the last record of each round passes every one."""
    return n % ROUND != version % 3


def judge(rows: Sequence[tuple[int, int]], sent: int, logged: Sequence[int], *, once: bool) -> str:
    """What is wrong with a key's rows, each ``(N, V)`` in their order; empty if nothing is.

    ``logged`` are the plans of the log in their order, ``sent`` is how many records there were.
    """
    makers: dict[int, list[int]] = {}
    for n, version in rows:
        makers.setdefault(n, []).append(version)
    for n, versions in makers.items():
        if once and len(versions) > 1:
            return f"record {n} has {len(versions)} results, of the plans {versions}"
        if unknown := set(versions) - set(logged):
            return f"record {n} has a result of plan {unknown}, which the log does not know"
        if wrong := [v for v in versions if not passes(v, n)]:
            return f"record {n} has a result of plan {wrong}, which drops it"
    first_rows = list(dict.fromkeys(n for n, _ in rows))
    if first_rows != sorted(first_rows):
        return f"out of order: {first_rows[-8:]}"
    at = 0  # the earliest plan that may have made a record, given those before it
    for n in range(sent):
        expected = makers.get(n)
        fits = [
            place
            for place in range(at, len(logged))
            if (logged[place] in expected if expected else not passes(logged[place], n))
        ]
        if not fits:
            what = f"a result of plan {expected}" if expected else "no result"
            return f"record {n} has {what}, behind records of plan {logged[at]}"
        at = fits[0]
    return ""


@dataclass
class Query:
    """A replaced query: what was sent to it, and the plans that the log has."""

    kind: str
    name: str
    sent: int = 0
    logged: list[int] = field(default_factory=lambda: [1])
    tried: int = 1

    @property
    def source(self) -> str:
        return f"{self.name}_IN"


class World:
    """A service with one query of a kind under a guarantee."""

    def __init__(self, site: Site, kind: str, guarantee: str) -> None:
        self.site, self.kind, self.guarantee = site, kind, guarantee
        self.settings = {
            "auto.offset.reset": "earliest",
            "cache.max.bytes.buffering": "0",
            "processing.guarantee": guarantee,
        }
        self.table = unique("T").upper()
        site.http.ksql(
            f"CREATE TABLE {self.table} (K STRING PRIMARY KEY, W STRING) "
            f"WITH (KAFKA_TOPIC='{self.table}', PARTITIONS=2, VALUE_FORMAT='JSON');"
        )
        for part, key in enumerate(KEYS):
            produce(site.broker.bootstrap, self.table, [(key, {"W": f"w{key}"})], part % 2)
        self.query = self.create()

    def create(self) -> Query:
        """A query of its own, with its source."""
        query = Query(self.kind, unique(self.kind[:1]).upper())
        self.site.http.ksql(
            f"CREATE STREAM {query.source} (K STRING KEY, N INT) WITH "
            f"(KAFKA_TOPIC='{query.source}', PARTITIONS=2, VALUE_FORMAT='JSON');"
        )
        self.site.http.ksql(self.text(query, "CREATE", 1), self.settings)
        self.query = query
        self.feed()
        self.verify()
        return query

    def text(self, query: Query, verb: str, version: int) -> str:
        entity, select = TEXTS[self.kind]
        statement = select.format(
            v=version, source=query.source, table=self.table, passes=f"N % 4 <> {version % 3}"
        )
        return f"{verb} {entity} {query.name} AS {statement};"

    def feed(self) -> None:
        query = self.query
        for part, key in enumerate(KEYS):
            records = [(key, {"N": n}) for n in range(query.sent, query.sent + ROUND)]
            produce(self.site.broker.bootstrap, query.source, records, part % 2)
        query.sent += ROUND

    def state(self) -> tuple[str, str]:
        """The id and state of the query; empty if there is none."""
        queries = self.site.http.queries()
        return next(((i, s) for i, s in queries.items() if f"_{self.query.name}_" in i), ("", ""))

    def learn(self) -> None:
        """Note which plan the catalog has."""
        query_id, _ = self.state()
        text = self.site.http.one(f"EXPLAIN {query_id};")["queryDescription"]["statementText"]
        version = int(text.split(" AS V")[0].rsplit(" ", 1)[1])
        if version != self.query.logged[-1]:
            self.query.logged.append(version)

    def rows(self) -> dict[str, list[tuple[int, int]]]:
        versions: dict[str, list[tuple[int, int]]] = {key: [] for key in KEYS}
        for seen in read_all(self.site.broker.bootstrap, self.query.name):
            versions[str(seen.key)].append((seen.value["N"], seen.value["V"]))
        return versions

    def verify(self) -> None:
        """All that was sent has come out right."""
        last = self.query.sent - 1

        def complete() -> bool:
            return all(any(n == last for n, _ in rows) for rows in self.rows().values())

        try:
            await_true("complete", complete)
        except AssertionError:
            tails = {key: rows[-4:] for key, rows in self.rows().items()}
            raise AssertionError(f"not complete up to {last}: {tails}; {self.state()}") from None
        self.judge(self.query.sent)

    def judge(self, sent: int) -> None:
        once = self.guarantee == "exactly_once_v2"
        for key, rows in self.rows().items():
            if wrong := judge(rows, sent, self.query.logged, once=once):
                raise AssertionError(f"{key}: {wrong}; the log has {self.query.logged}")

    # --- one point

    def strike_statement(self, number: int, fault: str) -> None:
        """Replace the query, and let the fault happen before the statement's effect."""
        with self._replacing(number) as (held, go, answer, pool):
            self._await(held, answer)
            self.feed()
            struck = pool.submit(self._strike, fault)
            time.sleep(0.3)  # the fault is on its way; whichever comes first, the results hold
            go.touch()
            _ended(struck)
        self._settle(fault)

    def strike_batch(self, before_commit: int, point: str, fault: str) -> None:
        """Let records come when no plan runs; then let the fault happen in the first batch."""
        hit, resume = (self.site.folder / unique(name) for name in ("hit", "go"))
        with self._replacing(before_commit) as (held, go, answer, pool):
            self._await(held, answer)
            self.feed()
            stops = {} if fault == "fail" else {"go": str(resume)}
            self.site.order(batch=point, hit=str(hit), **stops)
            go.touch()
            await_true("the first batch is there", hit.exists)
            struck = pool.submit(self._strike, fault)
            time.sleep(0.3)  # the fault is on its way; whichever comes first, the results hold
            resume.touch()
            _ended(struck)
        self._settle(fault)

    @contextlib.contextmanager
    def _replacing(
        self, number: int
    ) -> Iterator[tuple[Path, Path, Future[Any], ThreadPoolExecutor]]:
        site, query = self.site, self.query
        held, go = (site.folder / unique(name) for name in ("held", "go"))
        query.tried += 1
        text = self.text(query, "CREATE OR REPLACE", query.tried)
        site.order(statement=text[:40], hold_at=number, held=str(held), go=str(go))
        with ThreadPoolExecutor(3) as pool:
            answer = pool.submit(site.http.ksql, text, self.settings)
            try:
                yield held, go, answer, pool
            finally:
                go.touch()
            _ended(answer)
        site.order()

    @staticmethod
    def _await(held: Path, answer: Future[Any]) -> None:
        def reached() -> bool:
            if held.exists():
                return True
            assert not answer.done(), f"the statement has outlived the point: {answer.result()}"
            return False

        await_true("the statement is at the point", reached)

    def _strike(self, fault: str) -> None:
        site, query = self.site, self.query
        query_id, _ = ("", "") if fault in ("kill", "fail", "broker", "jvm") else self.state()
        match fault:
            case "kill":
                site.kill()
            case "jvm":
                os.kill(site.jvm_pid(), signal.SIGKILL)
            case "broker":
                site.broker.kill()
                time.sleep(1.0)  # how long the broker is away is the subject
                site.broker.restart()
            case "pause":
                site.http.ksql(f"PAUSE {query_id};")
            case "terminate":
                site.http.ksql(f"TERMINATE {query_id};")
            case "alter":
                site.http.ksql(f"ALTER STREAM {query.source} ADD COLUMN {unique('X')} INT;")
            case _:  # a task fails by itself
                pass

    def _settle(self, fault: str) -> None:
        if fault == "kill" and not self.site.runs:
            self.site.start()
        await_true("no command is in doubt", self._answers)
        query_id, _ = self.state()
        if not query_id:
            self.query.logged.append(self.query.tried)  # it may have counted before the end
            self._judge_ended()
            self.create()
            return
        self.learn()
        with contextlib.suppress(Refused):
            self.site.http.ksql(f"RESUME {query_id};")
        await_true("it runs", lambda: self.state()[1] == "RUNNING")
        self.feed()
        self.verify()

    def _answers(self) -> bool:
        try:
            self.site.http.ksql(f"CREATE TYPE {unique('TY').upper()} AS STRUCT<A INT>;")
        except (Refused, httpx.TransportError):
            return False
        return True

    def _judge_ended(self) -> None:
        """Of a query that was ended the last records may be missing."""
        for key, rows in self.rows().items():
            sent = max((n for n, _ in rows), default=-1) + 1
            once = self.guarantee == "exactly_once_v2"
            if wrong := judge(rows, sent, self.query.logged, once=once):
                raise AssertionError(f"{key}: {wrong}; the log has {self.query.logged}")

    def effects(self) -> list[str]:
        """The effects of a replacement, in their order."""
        file, query = self.site.folder / unique("trace"), self.query
        query.tried += 1
        text = self.text(query, "CREATE OR REPLACE", query.tried)
        self.site.order(statement=text[:40], trace=str(file))
        self.site.http.ksql(text, self.settings)
        self.site.order()
        self._settle("none")
        names: list[str] = json.loads(file.read_text(encoding="utf-8"))
        return names


def _ended(future: Future[Any]) -> None:
    """Wait for a request, whatever became of it."""
    with contextlib.suppress(Refused, httpx.TransportError):
        future.result()


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    guarantee: str
    kind: str
    point: str
    fault: str
    seconds: float
    wrong: str = ""


class Matrix:
    """Runs the points of one guarantee and kind; a fault gets the next point a new service."""

    def __init__(self, guarantee: str, kind: str, make_site: Callable[[], Site]) -> None:
        self.guarantee, self.kind = guarantee, kind
        self._make_site = make_site
        self._world: World | None = None

    def run(self, faults: Sequence[str], chance: random.Random, share: float) -> Iterator[Row]:
        """Yield the lines of that share of all points, chosen by ``chance``."""
        effects: list[str] = []
        yield self._row("not stopped", "none", lambda: effects.extend(self._ready().effects()))
        points: list[tuple[str, str, Callable[[], None]]] = []
        for number, effect in enumerate(effects, 1):
            name = f"{number} before {effect}"
            points += [
                (name, fault, lambda n=number, f=fault: self._hold(n, f))
                for fault in STATEMENT_FAULTS
            ]
        for point in BATCH_POINTS[self.guarantee]:
            points += [
                (
                    f"first batch {point}",
                    fault,
                    lambda p=point, f=fault: self._batch(
                        effects.index("commit_transaction") + 1, p, f
                    ),
                )
                for fault in BATCH_FAULTS
            ]
        for name, fault, run in points:
            if fault in faults and chance.random() < share:
                yield self._row(name, fault, run)

    def _hold(self, number: int, fault: str) -> None:
        self._ready().strike_statement(number, fault)

    def _batch(self, number: int, point: str, fault: str) -> None:
        self._ready().strike_batch(number, point, fault)

    def _row(self, point: str, fault: str, run: Callable[[], None]) -> Row:
        began, wrong = time.monotonic(), ""
        try:
            run()
        except (AssertionError, Refused, httpx.HTTPError, OSError) as problem:
            wrong = f"{type(problem).__name__}: {problem}"
            self.end()
        return Row(self.guarantee, self.kind, point, fault, time.monotonic() - began, wrong)

    def _ready(self) -> World:
        if self._world is None:
            site = self._make_site()
            site.order()
            site.start()
            self._world = World(site, self.kind, self.guarantee)
        return self._world

    def end(self) -> None:
        """End the processes."""
        if self._world is not None:
            self._world.site.abandon()
            self._world.site.broker.stop()
            self._world = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a row was lost, doubled, or of a plan that the log does not know."""
    parser = argparse.ArgumentParser(prog="tests.crash.switches", description=__doc__)
    parser.add_argument("--guarantee", choices=GUARANTEES, action="append")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--fault", choices={*STATEMENT_FAULTS, *BATCH_FAULTS}, action="append")
    parser.add_argument("--share", type=float, default=1.0, help="of the points, by chance")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    faults = chosen.fault or sorted({*STATEMENT_FAULTS, *BATCH_FAULTS})
    wrong = count = 0
    with tempfile.TemporaryDirectory(prefix="ksql-switch-") as folder:
        for guarantee in chosen.guarantee or GUARANTEES:
            for kind in chosen.kind or KINDS:
                matrix = Matrix(guarantee, kind, _sites(Path(folder)))
                try:
                    for row in matrix.run(faults, random.Random(chosen.seed), chosen.share):
                        count, wrong = count + 1, wrong + bool(row.wrong)
                        _say(row)
                finally:
                    matrix.end()
    sys.stdout.write(f"{count} points, {wrong} wrong\n")
    return int(wrong > 0)


def _sites(folder: Path) -> Callable[[], Site]:
    def make() -> Site:
        place = folder / unique("site")
        place.mkdir()
        return Site(Broker(place / "kafka"), place, unique("switch") + "_")

    return make


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _say(row: Row) -> None:
    outcome = f"WRONG {row.wrong}" if row.wrong else "ok"
    cells = (row.guarantee, row.kind, row.point, row.fault, f"{row.seconds:.0f} s", outcome)
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
