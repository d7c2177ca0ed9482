"""A service with a query of each kind under each guarantee, in which faults hit rebuilds.

Each query is held at a point of its own, as far as the engine's lock allows that. So one server is
killed for a dozen points. Each is judged by its own rows.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.crash.points import ANSWER, TURN
from tests.crash.rebuild_model import CELLS, STREAMS, History, Rebuilt, foreign, histories, live
from tests.crash.site import Site
from tests.crash.switch_model import KEYS, ROUND, Cell, judge
from tests.crash.switch_world import BATCH_STEPS, HaltedQuery, joined_table, noting, sound
from tests.kafka.records import ordered_producer, read_all, topics, unique
from tests.kafka.servers import Refused
from tests.waits import PATIENCE_S, await_true

ACTIONS = ("rebuild", "rollback", "abort")
WATCHED = {"stateless": "rollback", "aggregate": "rollback", "join": "abort", "windowed": "abort"}
"""Kinds whose rollbacks and aborts are watched; others have the same points."""
STATEMENT, CUT_OVER, LAUNCH, CLEAN_UP = "begin", "cut-over", "launch", "clean-up"
BUILD, FIRST = "build", "first batch"
_WORKS = (CUT_OVER, LAUNCH, CLEAN_UP)
_BROKER_AWAY_S = 1.0
_STANDS_S = 2 * PATIENCE_S / 3
_UNLOCKED = (ANSWER, TURN)

Effects = dict[tuple[Cell, str], dict[str, list[str]]]
"""What a rebuild, a rollback and an abort do, by cell and action: the effects of their parts."""


@dataclass(frozen=True)
class Point:
    """Before the effect's ``time``-th time within a part of an action; of a batch it is a step."""

    action: str
    part: str
    effect: str
    time: int = 1

    @property
    def name(self) -> str:
        """Return its name in the table."""
        time_ = f" {self.time}" if self.time > 1 else ""
        return f"{self.action}: {self.part}, {self.effect}{time_}"

    @property
    def locks(self) -> bool:
        """Whether nothing else can begin or be cut over while it lasts."""
        free = self.effect in _UNLOCKED or self.effect.startswith("offset sync")
        return self.part in (STATEMENT, CUT_OVER) and not free


def points(effects: Effects, cell: Cell, action: str) -> list[Point]:
    """The points of an action."""
    alike = [kind for kind in WATCHED if (kind in STREAMS) == (cell.kind in STREAMS)]
    kinds = [cell.kind, *alike]
    like = next(kind for kind in kinds if (Cell(cell.guarantee, kind), action) in effects)
    known = []
    for part, names in effects[Cell(cell.guarantee, like), action].items():
        times: Counter[str] = Counter()
        for effect in names:
            times[effect] += 1
            known.append(Point(action, part, effect, times[effect]))
    if action != "abort":
        steps = BATCH_STEPS[cell.guarantee]
        known += [Point(action, part, step) for part in (BUILD, FIRST) for step in steps]
    return known


@dataclass
class HaltedRebuild(HaltedQuery):
    """A query at its point."""

    query: Rebuilt
    point: Point = field(default_factory=lambda: Point("", "", ""))
    before: History = field(default_factory=History)
    missed: str = ""
    """Why it is not held there."""

    @property
    def statement(self) -> str:
        """The text that brings it there."""
        name = self.query.name
        if self.point.action == "rollback":
            return f"ROLLBACK UPGRADE OF {name};"
        return self.query.text("CREATE OR REPLACE")

    @property
    def abort(self) -> str:
        """The text that ends its rebuild."""
        return f"ABORT UPGRADE OF {self.query.name};"

    def await_halted(self, file: str) -> None:
        """Wait until it is held there.

        Raises: AssertionError.
        """
        deadline = time.monotonic() + _STANDS_S
        while not Path(self.file(file)).exists():
            if self.answer is not None and self.answer.done() and self.refusal:
                raise AssertionError(f"refused: {self.refusal}")
            assert time.monotonic() < deadline, f"nothing is held at the point {self.point.name}"
            time.sleep(0.05)

    def orders(self) -> list[dict[str, Any]]:
        """Return the orders that hold it there."""
        point, query_id = self.point, self.query.query_id
        files = {"held": self.file("held"), "go": self.file("go")}
        hold = {"hold_before": [point.effect, point.time], **files}
        turn = {
            "work": CUT_OVER,
            "query": query_id,
            "hold_before": [TURN, 1],
            "held": self.file("turn"),
            "go": self.file("go"),
        }
        match point.part:
            case "begin" if point.action == "abort":
                return [{"statement": self.abort, **hold}, turn]
            case "begin":
                return [{"statement": self.statement[:60], **hold}]
            case "build":
                hit = {"hit": self.file("held"), "go": self.file("go")}
                return [{"batch": point.effect, "candidate_of": query_id, **hit}]
            case "first batch":
                launched = {"held": self.file("launched"), "go": self.file("launch on")}
                work = {"work": LAUNCH, "query": query_id, "hold_before": [ANSWER, 1]}
                return [{**work, **launched}]
            case part:
                return [{"work": part, "query": query_id, **hold}]


class Service:
    """The service and its queries; ``effects`` are known once each action was watched."""

    def __init__(self, site: Site, effects: Effects) -> None:
        self.site = site
        self.effects = effects
        self.table = joined_table(site)
        self.begin_ms = (int(time.time() * 1000) - 1_800_000) // 10_000 * 10_000
        self.queries = {cell: self._create(cell) for cell in CELLS}
        self.feed(self.queries.values())
        self._verify_all(self.queries.values())
        self._watch(dict.fromkeys(CELLS, "rebuild"))  # from now on each has a former version
        self._watch({cell: WATCHED[cell.kind] for cell in CELLS if cell.kind in WATCHED})

    # --- one point of each query

    def inject(self, fault: str, chosen: Mapping[Cell, Point]) -> dict[Cell, HaltedRebuild]:
        """Let the fault happen when each query is at its point."""
        known = self.histories()
        halted = {
            cell: HaltedRebuild(
                query := self.queries[cell],
                self.site.folder,
                point=point,
                before=known[query.query_id],
            )
            for cell, point in chosen.items()
        }
        for each in halted.values():
            each.query.version += each.point.action != "rollback"
        with ThreadPoolExecutor(4 * len(halted) + 4) as pool:
            try:
                self._bring_to_points(halted.values(), pool)
                self.feed(each.query for each in sound(halted))
                self._inject(fault, halted.values())
            finally:
                for each in halted.values():
                    each.touch("go")
                    each.touch("launch on")
            wait([each.answer for each in halted.values() if each.answer is not None])
        self._settle(halted.values())
        return halted

    def _bring_to_points(self, halted: Iterable[HaltedRebuild], pool: ThreadPoolExecutor) -> None:
        """Have all held at their points; one that has the engine's lock comes last."""
        every = list(halted)
        orders = [order for each in every for order in each.orders()]
        self.site.order(orders=orders)
        for locks in (False, True):
            coming = [each for each in every if each.point.locks == locks]
            wait([pool.submit(self._drive, each, orders, pool) for each in coming])

    def _drive(
        self, each: HaltedRebuild, orders: list[dict[str, Any]], pool: ThreadPoolExecutor
    ) -> None:
        try:
            each.answer = pool.submit(self.site.http.ksql, each.statement, each.query.settings)
            if each.point.action == "abort":
                each.await_halted("turn")
                each.answer = pool.submit(self.site.http.ksql, each.abort)
            if each.point.part == FIRST:
                each.await_halted("launched")
                stop = {"hit": each.file("held"), "go": each.file("go")}
                orders.append({"batch": each.point.effect, "sink": each.query.name, **stop})
                self.site.order(orders=orders)
                self.feed([each.query])
                each.touch("launch on")
            each.await_halted("held")
        except AssertionError as problem:
            each.missed = str(problem)

    def _inject(self, fault: str, halted: Iterable[HaltedRebuild]) -> None:
        """Let the fault happen; the queries that are held continue while it does."""
        family = self.site.family()
        match fault:
            case "kill":
                os.kill(self.site.server_pid, signal.SIGKILL)
            case "jvm":
                self.site.kill_jvm()
            case _:
                self.site.broker.kill()
        for each in halted:
            each.touch("go")
            each.touch("launch on")
        if fault == "kill":
            self.site.await_dead(family)
        elif fault == "broker":
            time.sleep(_BROKER_AWAY_S)
            self.site.broker.restart()

    # --- afterwards

    def _settle(self, halted: Iterable[HaltedRebuild]) -> None:
        """Have every rebuild end, and compare all rows with the model."""
        self.site.order()
        if not self.site.runs:
            self.site.start()
        await_true("no command is in doubt", self._answers)
        every = list(halted)
        for each in every:
            with noting(each):
                self._await_ended(each)
        self.feed(each.query for each in sound(every))
        known = self.histories()
        for each in sound(every):
            with noting(each):
                history = known[each.query.query_id]
                each.plan = _plan(each, history)
                self.verify(each.query, history)
        for each in every:
            if each.wrong:
                self._create_instead(each.query)

    def _await_ended(self, each: HaltedRebuild) -> None:
        query_id = each.query.query_id
        try:
            await_true("its rebuild ends", lambda: not self.histories()[query_id].under_way)
        except AssertionError as problem:
            raise AssertionError(f"{problem}: {self._state(each.query)}") from None
        history = self.histories()[query_id]
        if each.answer is None or each.refusal or each.missed:
            return
        if each.point.action == "abort":
            given_up = history.ended > each.before.ended
            assert given_up or each.point.part != STATEMENT, "the log has no end of the rebuild"
        else:
            assert history.begun > each.before.begun, "the log has no rebuild"

    def _answers(self) -> bool:
        try:
            self.site.http.ksql(f"CREATE TYPE {unique('TY').upper()} AS STRUCT<A INT>;")
        except (Refused, httpx.TransportError):
            return False
        return True

    def _create_instead(self, query: Rebuilt) -> None:
        """Replace it by a new one: later points must not see its fault."""
        with contextlib.suppress(Refused):
            self.site.http.ksql(f"TERMINATE {query.query_id};")
        self.queries[query.cell] = fresh = self._create(query.cell)
        self.feed([fresh])
        self._verify_all([fresh])
        self._act([(fresh, "rebuild")])

    # --- queries

    def _create(self, cell: Cell) -> Rebuilt:
        query = Rebuilt(cell, unique(cell.kind[:1]).upper(), self.table, begin_ms=self.begin_ms)
        self.site.http.ksql(query.declaration)
        created = self.site.http.one(query.text("CREATE"), query.settings)
        query.query_id = created["commandStatus"]["queryId"]
        return query

    def feed(self, queries: Iterable[Rebuilt]) -> None:
        """More records of every key."""
        producer = ordered_producer(self.site.broker.bootstrap, **{"linger.ms": 5})
        for query in queries:
            for key, n, time_ms in query.records(ROUND):
                value = json.dumps({"N": n, "FK": foreign(key, n)})
                producer.produce(query.source, value, key, int(key[1]) % 2, timestamp=time_ms)
        assert producer.flush(PATIENCE_S) == 0

    def histories(self) -> dict[str, History]:
        """Return the histories that the command topic knows."""
        topic = f"_confluent-ksql-{self.site.service_id}_command_topic"
        return histories(read_all(self.site.broker.bootstrap, topic))

    # --- the actions, watched

    def _watch(self, actions: Mapping[Cell, str]) -> None:
        """Do it once with these queries; note the effects."""
        files: dict[Cell, dict[str, Path]] = {}
        orders = []
        for cell, action in actions.items():
            query = self.queries[cell]
            query.version += action != "rollback"
            each = HaltedRebuild(query, self.site.folder, point=Point(action, "", ""))
            text = each.abort if action == "abort" else each.statement
            parts = (STATEMENT,) if action == "abort" else (STATEMENT, *_WORKS)
            files[cell] = {part: Path(each.file(part)) for part in parts}
            for part, file in files[cell].items():
                meant = {"statement": text[:60]} if part == STATEMENT else {}
                work = {"work": part, "query": query.query_id}
                orders.append({**(meant or work), "trace": str(file)})
        self._act([(self.queries[cell], action) for cell, action in actions.items()], orders)
        for cell, by_part in files.items():
            action = actions[cell]
            for part, file in by_part.items():
                await_true(f"{action}: {part} of {cell} has ended", file.exists)
            self.effects[cell, action] = {
                part: json.loads(file.read_text(encoding="utf-8")) for part, file in by_part.items()
            }

    def _act(
        self, actions: Sequence[tuple[Rebuilt, str]], orders: Sequence[dict[str, Any]] = ()
    ) -> None:
        """Rebuild, roll back or abort; nothing goes wrong with that."""
        turns = []
        for query, action in actions:
            each = HaltedRebuild(query, self.site.folder, point=Point(action, STATEMENT, ""))
            turns += [(each, each.orders()[1])] if action == "abort" else []
        self.site.order(orders=[*orders, *(order for _, order in turns)])
        for query, action in actions:
            each = HaltedRebuild(query, self.site.folder, point=Point(action, "", ""))
            self.site.http.ksql(each.statement, query.settings)
        for each, _ in turns:
            each.await_halted("turn")
            self.site.http.ksql(each.abort)
            each.touch("go")
        for query, action in actions:
            query_id = query.query_id
            await_true(f"{action} ends", lambda i=query_id: not self.histories()[i].under_way)
        queries = [query for query, _ in actions]
        self.feed(queries)
        self._verify_all(queries)
        self.site.order()

    # --- rows

    def _verify_all(self, queries: Iterable[Rebuilt]) -> None:
        known = self.histories()
        for query in queries:
            self.verify(query, known[query.query_id])

    def verify(self, query: Rebuilt, history: History) -> None:
        """All that was sent has come out right, and nothing is left of versions that are gone."""
        bootstrap = self.site.broker.bootstrap
        if query.is_table:
            expected = _sorted(query.rows(history.plans[-1]))
            try:
                await_true(
                    "the rows",
                    lambda: _sorted(live(read_all(bootstrap, query.name))) == expected,
                )
            except AssertionError:
                present = _sorted(live(read_all(bootstrap, query.name)))
                raise AssertionError(self._differences(query, present, expected)) from None
            problem = query.wrong(read_all(bootstrap, query.name), history.plans)
        else:
            problem = self._stream_problem(query, history)
        assert not problem, f"{problem}; the log has {history}"
        kept = set() if history.former is None else {history.former}
        await_true(
            "no topic is left but the former version's",
            lambda: (
                self._hidden(query) <= kept and (not query.is_table or self._hidden(query) == kept)
            ),
        )

    def _hidden(self, query: Rebuilt) -> set[int]:
        """The numbers of the versions that have a hidden topic."""
        begin = f"query_{query.query_id}-v"
        hidden = [name for name in topics(self.site.broker.bootstrap) if begin in name]
        return {int(name.partition(begin)[2].partition("-")[0]) for name in hidden}

    def _stream_problem(self, query: Rebuilt, history: History) -> str:
        bootstrap, last = self.site.broker.bootstrap, query.sent - 1
        rows: dict[str, list[tuple[int, int]]] = {}

        def complete() -> bool:
            rows.update({key: [] for key in KEYS})
            for seen in read_all(bootstrap, query.name):
                rows[str(seen.key)].append((seen.value["N"], seen.value["V"]))
            return all(any(n == last for n, _ in outputs) for outputs in rows.values())

        try:
            await_true("complete", complete)
        except AssertionError:
            tails = {key: outputs[-4:] for key, outputs in rows.items()}
            raise AssertionError(
                f"not complete up to {last}: {tails}; {self._state(query)}; {history}"
            ) from None
        for key, outputs in rows.items():
            if wrong := judge(outputs, query.sent, history.plans, once=query.once):
                return f"{key}: {wrong}; rows {outputs[-12:]}"
            if outputs[-1][1] != history.plans[-1]:
                return f"{key}: the last row is of plan {outputs[-1][1]}"
        return ""

    def _differences(self, query: Rebuilt, present: list[Any], expected: list[Any]) -> str:
        missing = [row for row in expected if row not in present]
        more = [row for row in present if row not in expected]
        return (
            f"{len(missing)} rows are missing: {missing[:3]}; {len(more)} more: {more[:3]}; "
            f"{self._state(query)}"
        )

    def _state(self, query: Rebuilt) -> str:
        """Its state and its newest error."""
        try:
            state = self.site.http.queries().get(query.query_id)
            explained = self.site.http.one(f"EXPLAIN {query.query_id};")["queryDescription"]
        except (Refused, httpx.TransportError) as problem:
            return str(problem)
        errors = explained["queryErrors"]
        return f"{state} {errors[-1]['errorMessage'][:300] if errors else ''}"


def _sorted(rows: Iterable[tuple[str, dict[str, Any]]]) -> list[tuple[str, list[Any]]]:
    return sorted((key, sorted(value.items())) for key, value in rows)


def _plan(each: HaltedRebuild, history: History) -> str:
    """Which plan runs: that of before, or that of the statement."""
    return "new" if len(history.plans) > len(each.before.plans) else "old"
