"""A service with a query of each kind under each guarantee, in which faults hit replacements.

The queries are replaced at once, as far as the point allows that, so that one server is killed for
several points. Each is judged by its own rows.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.crash.points import BETWEEN
from tests.crash.site import Site
from tests.crash.switch_model import CELLS, EXACTLY_ONCE, KEYS, ROUND, Cell, Query, judge
from tests.kafka.records import ordered_producer, produce, read_all, unique
from tests.kafka.servers import Refused
from tests.waits import PATIENCE_S, await_true

END = "end of the old plan"
BATCH_STEPS = {
    "at_least_once": ("read", "sent", "unacknowledged", "acknowledged"),
    EXACTLY_ONCE: ("unbegun", "begun", "uncommitted", "committed"),
}
_LET_IT_WORK_S = 1.0


class Part(Enum):
    """Which part of a switch a point belongs to."""

    STATEMENT = "before"
    FIRST = "first batch"
    LAST = "last batch"


@dataclass(frozen=True)
class Point:
    """``step`` is an effect of the statement, or the place in a batch's steps."""

    part: Part
    step: str | int
    fault: str

    def name(self, cell: Cell) -> str:
        """What the table calls it."""
        step = self.step if isinstance(self.step, str) else BATCH_STEPS[cell.guarantee][self.step]
        return f"{self.part.value} {step}"


@dataclass
class HaltedQuery:
    """A query at a point: files that stop it, its statement's answer, what became of it."""

    query: Query
    folder: Path
    answer: Future[Any] | None = None
    wrong: str = ""
    plan: str = ""
    files: dict[str, Path] = field(default_factory=dict)

    @property
    def refusal(self) -> str:
        """Why the statement did not succeed, empty if it did."""
        problem = self.answer.exception() if self.answer is not None else None
        if isinstance(problem, Refused):
            return str(problem.body.get("message", "")).partition("\n")[0]
        return type(problem).__name__ if problem is not None else ""

    def file(self, name: str) -> str:
        """A file of that name, of its own."""
        return str(self.files.setdefault(name, self.folder / unique(name)))

    def touch(self, name: str) -> None:
        """Make a file that something waits for."""
        Path(self.file(name)).touch()

    def await_file(self, name: str) -> None:
        """Wait until something stands at the point.

        Raises: AssertionError if the statement has ended instead.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not Path(self.file(name)).exists():
            if self.answer is not None and self.answer.done():
                raise AssertionError(f"the statement has ended: {ending(self.answer)}")
            assert time.monotonic() < deadline, f"nothing stands at the point: {name}"
            time.sleep(0.02)


S = TypeVar("S", bound=HaltedQuery)


def joined_table(site: Site) -> str:
    """Create the table that queries join, with a row for each key; return its name."""
    table = unique("T").upper()
    site.http.ksql(
        f"CREATE TABLE {table} (K STRING PRIMARY KEY, W STRING) "
        f"WITH (KAFKA_TOPIC='{table}', PARTITIONS=2, VALUE_FORMAT='JSON');"
    )
    for part, key in enumerate(KEYS):
        produce(site.broker.bootstrap, table, [(key, {"W": f"w{key}"})], part % 2)
    return table


class Service:
    """The service, and the places of each cell's effects in a replacement."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.table = joined_table(site)
        self.queries = {cell: self._create(cell) for cell in CELLS}
        self._feed(self.queries.values())
        for query in self.queries.values():
            self._verify(query)
        self.effects = self._trace(self.queries[CELLS[0]])  # other kinds have the same

    # --- one point, for several queries

    def inject(self, point: Point, cells: Sequence[Cell]) -> dict[Cell, HaltedQuery]:
        """Replace the queries, and let the fault happen when all of them are at the point."""
        halted = {cell: HaltedQuery(self.queries[cell], self.site.folder) for cell in cells}
        with ThreadPoolExecutor(4 * len(cells)) as pool:
            try:
                self._bring_to_points(point, halted, pool)
                self._inject(point, sound(halted), pool)
            finally:
                for each in halted.values():
                    for name in ("go", "resume"):
                        each.touch(name)
            wait([each.answer for each in halted.values() if each.answer is not None])
        self._settle(halted.values())
        return halted

    def _bring_to_points(
        self, point: Point, halted: dict[Cell, HaltedQuery], pool: ThreadPoolExecutor
    ) -> None:
        """Have all queries, or their statements, stand at the point."""
        for each in halted.values():
            each.query.version += 1
        match point.part:
            case Part.STATEMENT:
                self._send(halted, str(point.step), pool)
                failing = point.fault == "fail"
                self._order_batches(halted, 1, fails=True) if failing else None
                self._feed(each.query for each in sound(halted))
                self._await(halted, "hit") if failing else None
            case Part.FIRST:
                self._send(halted, BETWEEN, pool)
                self._order_batches(
                    halted, int(point.step), stops=True, fails=point.fault == "fail"
                )
                self._feed(each.query for each in sound(halted))
                for each in sound(halted):
                    each.touch("go")
                self._await(halted, "hit")
            case Part.LAST:
                batches = self._batches(
                    halted, int(point.step), stops=True, fails=point.fault == "fail"
                )
                self.site.order(orders=batches)
                self._feed(each.query for each in halted.values())
                self._await(halted, "hit")
                self._send(halted, END, pool, batches)
                for each in sound(halted):
                    each.touch("go")
                time.sleep(_LET_IT_WORK_S)  # now it waits for the batch

    def _send(
        self,
        halted: dict[Cell, HaltedQuery],
        effect: str,
        pool: ThreadPoolExecutor,
        orders: Sequence[dict[str, Any]] = (),
    ) -> None:
        """Send the statements; they stop before the effect."""
        holds = [
            {
                "statement": each.query.beginning,
                "hold_at": self.effects.index(effect) + 1,
                "held": each.file("held"),
                "go": each.file("go"),
            }
            for each in halted.values()
        ]
        self.site.order(orders=[*holds, *orders])
        for each in sound(halted):
            text = each.query.text("CREATE OR REPLACE")
            each.answer = pool.submit(self.site.http.ksql, text, each.query.settings)
        self._await(halted, "held")

    def _await(self, halted: dict[Cell, HaltedQuery], file: str) -> None:
        for each in sound(halted):
            try:
                each.await_file(file)
            except AssertionError as problem:
                each.wrong = str(problem)

    def _order_batches(self, halted: dict[Cell, HaltedQuery], step: int, **options: bool) -> None:
        self.site.order(orders=self._batches(halted, step, **options))

    @staticmethod
    def _batches(
        halted: dict[Cell, HaltedQuery], step: int, *, stops: bool = False, fails: bool = False
    ) -> list[dict[str, Any]]:
        return [
            {
                "batch": BATCH_STEPS[cell.guarantee][step],
                "sink": each.query.name,
                "hit": each.file("hit"),
                "fails": fails,
                **({"go": each.file("resume")} if stops else {}),
            }
            for cell, each in halted.items()
        ]

    def _inject(
        self, point: Point, halted: Sequence[HaltedQuery], pool: ThreadPoolExecutor
    ) -> None:
        """Let the fault happen; what stands goes on while it does."""
        begun = [pool.submit(act) for act in self._acts(point.fault, [s.query for s in halted])]
        wait(begun, timeout=_LET_IT_WORK_S)
        for each in halted:
            each.touch("go")
            each.touch("resume")
        for future in begun:
            with contextlib.suppress(Refused, httpx.TransportError):
                future.result()

    def _acts(self, fault: str, queries: Sequence[Query]) -> list[Callable[[], object]]:
        """What is to be done at once; a batch fails by itself."""
        match fault:
            case "kill":
                return [self.site.kill]
            case "jvm":
                return [self.site.kill_jvm]
            case "broker":
                return [self.site.lose_broker]
            case "pause" | "terminate":
                ids = self.ids()
                texts = [f"{fault} {ids[query.name][0]};" for query in queries]
            case "alter":
                texts = [
                    f"ALTER STREAM {query.source} ADD COLUMN {unique('X')} INT;"
                    for query in queries
                ]
            case _:
                texts = []
        return [partial(self.site.http.ksql, text) for text in texts]

    # --- afterwards

    def _settle(self, halted: Iterable[HaltedQuery]) -> None:
        """Have everything run again, and compare all rows with the model."""
        self.site.order()
        if not self.site.runs:
            self.site.start()
        await_true("no command is in doubt", self._answers)
        ids = self.ids()
        for each in halted:
            with noting(each):
                if each.query.name in ids:
                    with contextlib.suppress(Refused):
                        self.site.http.ksql(f"RESUME {ids[each.query.name][0]};")
                else:
                    each.plan = "ended"
                    self._judge(each.query, ended=True)
                    self.queries[each.query.cell] = each.query = self._create(each.query.cell)
        self._feed(each.query for each in sound(halted))
        for each in sound(halted):
            with noting(each):
                new = self._verify(each.query) == each.query.version
                each.plan = each.plan or ("new" if new else "old")
        for each in halted:
            if each.wrong:
                self._create_instead(each.query)

    def _create_instead(self, query: Query) -> None:
        """What went wrong must not show in later points."""
        with contextlib.suppress(Refused):
            self.site.http.ksql(f"TERMINATE {self.ids()[query.name][0]};")
        self.queries[query.cell] = fresh = self._create(query.cell)
        self._feed([fresh])
        self._verify(fresh)

    def _answers(self) -> bool:
        try:
            self.site.http.ksql(f"CREATE TYPE {unique('TY').upper()} AS STRUCT<A INT>;")
        except (Refused, httpx.TransportError):
            return False
        return True

    def ids(self) -> dict[str, tuple[str, str]]:
        """The ids and states of the queries, by the names of their results."""
        states = self.site.http.queries()
        return {
            query.name: (query_id, state)
            for query in self.queries.values()
            for query_id, state in states.items()
            if f"_{query.name}_" in query_id
        }

    def _create(self, cell: Cell) -> Query:
        query = Query(cell, unique(cell.kind[:1]).upper(), self.table)
        self.site.http.ksql(
            f"CREATE STREAM {query.source} (K STRING KEY, N INT) WITH "
            f"(KAFKA_TOPIC='{query.source}', PARTITIONS=2, VALUE_FORMAT='JSON');"
        )
        self.site.http.ksql(query.text("CREATE"), query.settings)
        return query

    def _feed(self, queries: Iterable[Query]) -> None:
        """More records of every key."""
        producer = ordered_producer(self.site.broker.bootstrap, **{"linger.ms": 5})
        for query in queries:
            for part, key in enumerate(KEYS):
                for n in range(query.sent, query.sent + ROUND):
                    value = json.dumps({"N": n})
                    producer.produce(query.source, value, key, part % 2)
            query.sent += ROUND
        assert producer.flush(PATIENCE_S) == 0

    def _trace(self, query: Query) -> list[str]:
        """The effects of a replacement, in their order."""
        file = self.site.folder / unique("trace")
        query.version += 1
        self.site.order(statement=query.beginning, trace=str(file))
        self.site.http.ksql(query.text("CREATE OR REPLACE"), query.settings)
        self.site.order()
        self._feed([query])
        self._verify(query)
        effects: list[str] = json.loads(file.read_text(encoding="utf-8"))
        return effects

    # --- rows

    def _rows(self, query: Query) -> dict[str, list[tuple[int, int]]]:
        rows: dict[str, list[tuple[int, int]]] = {key: [] for key in KEYS}
        for seen in read_all(self.site.broker.bootstrap, query.name):
            rows[str(seen.key)].append((seen.value["N"], seen.value["V"]))
        return rows

    def _logged(self, query: Query) -> list[int]:
        """The plans that the command topic has."""
        topic = f"_confluent-ksql-{self.site.service_id}_command_topic"
        commands = read_all(self.site.broker.bootstrap, topic)
        return query.plans([seen.value.get("statement", "") for seen in commands if seen.value])

    def _verify(self, query: Query) -> int:
        """All that was sent has come out right; returns the plan that made the last row."""
        last = query.sent - 1
        rows: dict[str, list[tuple[int, int]]] = {}

        def complete() -> bool:
            rows.update(self._rows(query))
            return all(any(n == last for n, _ in outputs) for outputs in rows.values())

        try:
            await_true("complete", complete)
        except AssertionError:
            tails = {key: outputs[-4:] for key, outputs in rows.items()}
            state = self.ids().get(query.name)
            raise AssertionError(f"not complete up to {last}: {tails}; {state}") from None
        self._judge(query)
        return max(version for n, version in rows[KEYS[0]] if n == last)

    def _judge(self, query: Query, *, ended: bool = False) -> None:
        """Compare the rows with the model; of a query that was ended the last may be missing."""
        logged, rows = self._logged(query), self._rows(query)
        once = query.cell.guarantee == EXACTLY_ONCE
        for key, outputs in rows.items():
            sent = max((n for n, _ in outputs), default=-1) + 1 if ended else query.sent
            if wrong := judge(outputs, sent, logged, once=once):
                raise AssertionError(f"{key}: {wrong}; the log has {logged}; rows {outputs[-12:]}")


@contextlib.contextmanager
def noting(halted: HaltedQuery) -> Any:
    """What goes wrong with one query is told, and the others go on."""
    try:
        yield
    except (AssertionError, Refused) as problem:
        halted.wrong = f"{type(problem).__name__}: {problem}"


def sound(halted: Mapping[Cell, S] | Iterable[S]) -> list[S]:
    every = halted.values() if isinstance(halted, Mapping) else halted
    return [each for each in every if not each.wrong]


def ending(answer: Future[Any]) -> str:
    problem = answer.exception()
    return str(answer.result()) if problem is None else f"{type(problem).__name__}: {problem}"
