"""Where a process can be made to die: before each effect that a statement or a batch has.

Effects are taken where they leave the process (files, Kafka, the database, Spark, HTTP), not by the
names of our own functions: a write that somebody adds later is a new point by itself.

A control file says what is to happen; it is read at each statement and each batch:

    {"statement": "CREATE STREAM D", "kill_at": 3}     die before the statement's third effect
    {"statement": "CREATE STREAM D", "trace": FILE}    live, and write the effects' names down
    {"statement": "..", "hold_at": 3, "held": FILE, "go": FILE}    stop there until the test goes on
    {"batch": "commit", "victim": PID, "hit": FILE}    a worker kills PID there, once
    {"batch": "commit", "hit": FILE}                   it fails there, once
    {"batch": "commit", "hit": FILE, "go": FILE}       it stops there, once, until the test goes on
    {"batch": .., "hit": .., "go": .., "fails": true}  it fails after that
    {"batch": "commit", "sink": "D", "hit": FILE}      only batches that write there
    {"batch": "commit", "candidate_of": ID, ..}        only batches of a query's candidate
    {"work": "launch", "query": ID, ..}                as for a statement, in a part of a cut-over
    {.., "hold_before": ["os.replace", 2], "held": FILE, "go": FILE}    at an effect's second time

Several orders at once are a list, ``{"orders": [..]}``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.util
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

CONTROL = "KSQL_CRASH_CONTROL"
ANSWER = "answer"
"""The last point of every statement: all is done and the client does not know."""

BETWEEN = "the look at the position"
"""No plan of a query that is replaced runs, and the command is not written."""

TURN = "the turn of the cut-over"
"""The candidate has caught up, and both versions run."""

_here = threading.local()
_PATIENCE_S = 240.0


def install() -> None:
    """Watch this process if it belongs to a server under test."""
    if CONTROL not in os.environ:
        return
    for name in ("replace", "rename", "mkdir"):
        _watch(os, name, f"os.{name}")
    _watch(shutil, "rmtree", "rmtree")
    sys.meta_path.insert(0, _AfterImport(_PATCHES))


# --- effects of a statement -----------------------------------------------------------------------


class _Statement:
    """The statement that this thread carries out, if it is the one that is meant."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self._orders = orders
        self.effects: list[str] = []

    def reach(self, effect: str) -> None:
        """Die if it is time; else write the effect down."""
        self.effects.append(effect)
        if len(self.effects) == self._orders.get("kill_at"):
            os.kill(os.getpid(), signal.SIGKILL)
        meant, time_ = self._orders.get("hold_before", (None, 0))
        is_meant = effect == meant and self.effects.count(effect) == time_
        if is_meant or len(self.effects) == self._orders.get("hold_at"):
            Path(self._orders["held"]).touch()
            _await(self._orders["go"])

    def end(self) -> None:
        """Tell what was seen."""
        if "trace" in self._orders:
            Path(self._orders["trace"]).write_text(json.dumps(self.effects), encoding="utf-8")


def orders() -> list[dict[str, Any]]:
    """What the control file says now."""
    try:
        content = json.loads(Path(os.environ[CONTROL]).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    several: list[dict[str, Any]] = content.get("orders", [content])
    return several


def reach(effect: str) -> None:
    """An effect is about to happen in this thread."""
    statement = getattr(_here, "statement", None)
    if statement is not None:
        statement.reach(effect)


def _watch(owner: Any, name: str, effect: str) -> None:
    usual = getattr(owner, name)

    @functools.wraps(usual)
    def watched(*args: Any, **kwargs: Any) -> Any:
        reach(effect)
        return usual(*args, **kwargs)

    setattr(owner, name, watched)


class _Watched:
    """A request that is carried out in whatever thread ``proceed`` is called."""

    def __init__(self, running: Any, statement: _Statement) -> None:
        self._running = running
        self._statement = statement

    def proceed(self) -> Any:
        _here.statement = self._statement
        try:
            answer = self._running.proceed()
            self._statement.reach(ANSWER)
        finally:
            _here.statement = None
            self._statement.end()
        return answer


def _watch_service(module: ModuleType) -> None:
    usual = module.StatementService.begin

    def begin(self: Any, text: str, *args: Any) -> Any:
        meant = [each for each in orders() if text.startswith(each.get("statement", "\0"))]
        running = usual(self, text, *args)
        return _Watched(running, _Statement(meant[0])) if meant else running

    module.StatementService.begin = begin


def _watch_kafka(module: ModuleType) -> None:
    class Producer(module.Producer):  # type: ignore[name-defined]
        """The library's own, whose methods cannot be exchanged."""

        def init_transactions(self, *args: Any) -> Any:
            reach("init_transactions")
            return super().init_transactions(*args)

        def begin_transaction(self, *args: Any) -> Any:
            reach("begin_transaction")
            return super().begin_transaction(*args)

        def commit_transaction(self, *args: Any) -> Any:
            reach("commit_transaction")
            return super().commit_transaction(*args)

        def flush(self, *args: Any) -> Any:
            reach("flush")
            return super().flush(*args)

    module.__dict__["Producer"] = Producer


def _watch_admin(module: ModuleType) -> None:
    for name in ("create_topics", "delete_topics", "create_partitions", "delete_consumer_groups"):
        _watch(module.AdminClient, name, name)


def _watch_database(module: ModuleType) -> None:
    module.event.listen(module.Engine, "commit", lambda _connection: reach("database commit"))


def _watch_http(module: ModuleType) -> None:
    usual = module.Client.send

    def send(self: Any, request: Any, **kwargs: Any) -> Any:
        if request.method != "GET":
            reach(f"HTTP {request.method}")
        return usual(self, request, **kwargs)

    module.Client.send = send


def _watch_start(module: ModuleType) -> None:
    _watch(module.DataStreamWriter, "start", "Spark start")


def _watch_stop(module: ModuleType) -> None:
    _watch(module.StreamingQuery, "stop", "Spark stop")


def _watch_trial(module: ModuleType) -> None:
    _watch(module, "run", "trial")


def _watch_end(module: ModuleType) -> None:
    _watch(module, "finish_batch_and_stop", "end of the old plan")


def _watch_gap(module: ModuleType) -> None:
    _watch(module.SparkRunner, "_position", BETWEEN)


# --- effects of a cut-over ------------------------------------------------------------------------


@contextlib.contextmanager
def _working(work: str, query_id: str) -> Iterator[None]:
    """Watch the work of this thread for a query like a statement, if an order means it."""
    meant = [o for o in orders() if (o.get("work"), o.get("query")) == (work, query_id)]
    if not meant:
        yield
        return
    _here.statement = _Statement(meant[0])
    try:
        yield
        _here.statement.reach(ANSWER)
    finally:
        _here.statement.end()
        _here.statement = None


def _watch_engine(module: ModuleType) -> None:
    usual = module.Engine.cut_over

    def cut_over(self: Any, query_id: str, settings: Any) -> Any:
        with _working("cut-over", query_id):
            reach(TURN)
            return usual(self, query_id, settings)

    module.Engine.cut_over = cut_over


def _watch_supervisor(module: ModuleType) -> None:
    """Several cut-overs at once, so that one that is held keeps no other from its point."""
    usual, under_way = module.RebuildSupervisor._cut_over, set()

    def _cut_over(self: Any, rebuild: Any) -> None:
        version = rebuild.candidate.version
        if version in under_way:
            return

        def work() -> None:
            try:
                usual(self, rebuild)
            finally:
                under_way.discard(version)

        under_way.add(version)
        threading.Thread(target=work, daemon=True).start()

    module.RebuildSupervisor._cut_over = _cut_over


def _watch_offset_sync(module: ModuleType) -> None:
    usual = module.OffsetSync._enter

    def _enter(self: Any, state: Any) -> None:
        usual(self, state)
        reach(f"offset sync {state.name}")

    module.OffsetSync._enter = _enter


def _watch_completion(module: ModuleType) -> None:
    complete = module.CutOverCompletion.complete

    def watched_complete(self: Any, query: Any, spec: Any, *args: Any) -> None:
        mark = module.cut_over_mark.read(spec.checkpoint)
        number = query.cut_over.number if query.cut_over is not None else None
        if number is None or (mark is not None and mark.done and mark.number == number):
            complete(self, query, spec, *args)  # it is completed, or not to be
            return
        with _working("launch", query.id):
            complete(self, query, spec, *args)

    module.CutOverCompletion.complete = watched_complete


def _watch_copies(module: ModuleType) -> None:
    delete = module.RowCopies.delete

    def watched_delete(self: Any, hidden: str, query_id: str) -> None:
        with _working("clean-up", query_id):
            delete(self, hidden, query_id)

    module.RowCopies.delete = watched_delete


def _watch_calls(module: Any) -> None:
    """Watched work makes its calls itself: another thread's would be nobody's."""
    usual = module.call_within

    def call_within(name: str, call: Callable[[], object], limit_s: float) -> bool:
        if getattr(_here, "statement", None) is None:
            return bool(usual(name, call, limit_s))
        call()
        return True

    module.call_within = call_within


# --- effects of a batch ---------------------------------------------------------------------------


def _inject(point: str, sink: str) -> None:
    """Carry out the orders for this point of a batch that writes to the topic ``sink``."""
    for order in orders():
        if order.get("batch") == point and _is_meant(order, sink):
            _inject_once(order, point)


def _is_meant(order: dict[str, Any], sink: str) -> bool:
    if "candidate_of" in order:
        return f"query_{order['candidate_of']}-v" in sink
    return bool(order.get("sink", sink) == sink)


def _inject_once(order: dict[str, Any], point: str) -> None:
    """Kill the victim, wait, or fail; only once, whichever worker comes first."""
    try:
        os.close(os.open(order["hit"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    if "victim" in order:
        os.kill(order["victim"], signal.SIGKILL)
        return
    if "go" in order:
        _await(order["go"])
    if "go" not in order or order.get("fails"):
        raise RuntimeError(f"watched at {point}")


def _await(file: str) -> None:
    """Wait until the test has made the file; it does so within minutes, or has given up."""
    end = time.monotonic() + _PATIENCE_S
    while not Path(file).exists() and time.monotonic() < end:
        time.sleep(0.01)


def _around(owner: Any, name: str, before: str, after: str, sink: str) -> None:
    """``sink`` is the attribute that has the name of the topic."""
    usual = getattr(owner, name)

    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        _inject(before, getattr(self, sink))
        done = usual(self, *args, **kwargs)
        _inject(after, getattr(self, sink))
        return done

    setattr(owner, name, watched)


def _watch_sink(module: ModuleType) -> None:
    _around(module.TaskSink, "write", "read", "sent", "_topic")
    _around(module.TaskSink, "close", "unacknowledged", "acknowledged", "_topic")


def _watch_transactions(module: ModuleType) -> None:
    _around(module.TaskTransactions, "begin", "unbegun", "begun", "marker")
    _around(module.TaskTransactions, "commit", "uncommitted", "committed", "marker")


_PATCHES: dict[str, Callable[[ModuleType], None]] = {
    "ksql.app.service": _watch_service,
    "ksql.control.engine.engine": _watch_engine,
    "ksql.control.rebuild_supervisor": _watch_supervisor,
    "ksql.core.process.periodic": _watch_calls,
    "ksql.spark.query.offset_sync": _watch_offset_sync,
    "ksql.spark.query.cut_over": _watch_completion,
    "ksql.spark.query.row_copies": _watch_copies,
    "confluent_kafka": _watch_kafka,
    "confluent_kafka.admin": _watch_admin,
    "sqlalchemy": _watch_database,
    "httpx": _watch_http,
    "pyspark.sql.streaming.readwriter": _watch_start,
    "pyspark.sql.streaming.query": _watch_stop,
    "ksql.spark.task.trial_task": _watch_trial,
    "ksql.spark.query.internals": _watch_end,
    "ksql.spark.query.runner": _watch_gap,
    "ksql.spark.task.sink": _watch_sink,
    "ksql.kafka.producers.task_transactions": _watch_transactions,
}


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function with a module right after it was imported."""

    def __init__(self, hooks: dict[str, Callable[[ModuleType], None]]) -> None:
        self._hooks = dict(hooks)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> Any:
        """The usual spec, with the patch behind its loader."""
        del path, target
        patch = self._hooks.pop(name, None)  # the search below comes here again
        if patch is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        usual = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            usual(module)
            patch(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # a stand-in
        return spec
