"""The few things that need Spark's own objects instead of its public Python API; PySpark is pinned.

On another Spark a query is stopped the public way; all else raises Py4JError.
"""

from __future__ import annotations

import contextlib
import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import orjson
from py4j.java_gateway import JavaMember
from py4j.protocol import STATIC_PREFIX
from pyspark.errors import StreamingQueryException

from ksql.spark.session.jvm import LOST, classes_of, raise_if_java

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ksql.spark.checkpoint.checkpoint import Offsets
    from ksql.spark.query.spec import Link, QuerySpec

FULL_SHARE: Final = 4
"""The weight of a query's pool; that of a candidate, which has less, is a whole number as well."""
_SLEEPS: Final = "Waiting for next trigger"
_LOOK_S: Final = 0.25  # longer than what lies between Spark's look for errors and its batch
_MONITOR = "org.apache.spark.api.python.PythonWorkerFactory$MonitorThread"
_OUTER = _MONITOR.replace(".", "$") + "$"


def finish_batch_and_stop(session: SparkSession, query: StreamingQuery, timeout_s: float) -> bool:
    """End a query at a batch boundary: the running batch is committed, no other begins.

    The public ``stop`` interrupts the running batch, whose records were then produced but not
    committed, and come a second time after a restart. So does setting the query's state while a
    batch is being planned: Spark then interrupts itself and leaves the batch's job running. Before
    each batch, and only there, Spark's loop looks for an error of its helper threads; this sets
    one, and waits. A loop that rests in its source is released, one that sleeps until its next
    trigger is interrupted: no batch can begin.

    Returns: False if the batch outlasts the time.
    Raises: an error of ``LOST`` if Spark's process has gone, or this Spark has no such place.
    """
    execution: Any = query._jsq  # noqa: SLF001 - no public way
    try:
        jvm = classes_of(session)
        inner = execution.streamingQuery()
        end = jvm.java.util.concurrent.CancellationException("stopped between two batches")
        inner.errorNotifier().markError(end)
        deadline = time.monotonic() + timeout_s
        while True:
            jvm.ksql.Rest.release(query.name)  # each time: it may have begun to rest meanwhile
            if inner.awaitTermination(_ms(min(deadline - time.monotonic(), _LOOK_S))):
                return True
            if _sleeps(query):
                query.stop()
                return True
            if time.monotonic() >= deadline:
                return False
    except StreamingQueryException:
        return True  # the end that was set, or one that came before


def interrupt(query: StreamingQuery, spec: QuerySpec | None) -> None:
    """End a query within its batch; its tasks' processes may outlive that, and write no more.

    Raises: whatever Spark does, if it does not manage.
    """
    if spec is not None:
        spec.right.withdraw()
    query.stop()


def _sleeps(query: StreamingQuery) -> bool:
    """Return whether a query waits for its next trigger; no batch is planned or run then."""
    status = query.status
    return not status["isTriggerActive"] and str(status["message"]).startswith(_SLEEPS)


def _ms(seconds: float) -> int:
    return max(int(seconds * 1000), 1)


def bound_batches(session: SparkSession, query: StreamingQuery, records: int) -> bool:
    """Set the most records of the batches that are planned from now on.

    The source's own option counts for as long as the query runs. A trigger that rests has the bound
    of its beginning, so it ends.

    Returns: False if this Spark has no such place, or is gone.
    """
    execution: Any = query._jsq  # noqa: SLF001 - no public way
    try:
        jvm = classes_of(session)
        inner = execution.streamingQuery()
        limit = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.maxRows(records)
        sources = inner.uniqueSources()
        keys = sources.keysIterator()
        while keys.hasNext():
            sources = sources.updated(keys.next(), limit)
        getattr(inner, "uniqueSources_$eq")(sources)
        jvm.ksql.Rest.release(query.name)
    except LOST:
        return False
    return True


def close_gate(session: SparkSession, gate: str) -> bool:
    """Have a query whose source names the gate wait there, before it looks at its checkpoint.

    Returns: False if Spark is gone.
    """
    try:
        jvm = classes_of(session)
        jvm.ksql.Gate.close(gate)
    except LOST:
        return False
    return True


def open_gate(session: SparkSession, gate: str) -> None:
    """Let the query through, and forget the gate."""
    with contextlib.suppress(*LOST):
        jvm = classes_of(session)
        jvm.ksql.Gate.open(gate)


def move_end(session: SparkSession, name: str, offsets: Offsets | None) -> None:
    """Move the end of a query that has one, also while it runs; None: to where it was stated."""
    with contextlib.suppress(*LOST):
        jvm = classes_of(session)
        if offsets is None:
            jvm.ksql.Until.forget(name)
        else:
            jvm.ksql.Until.move(name, json.dumps(offsets))


def announce_progress(session: SparkSession, name: str, link: Link, now_ms: int) -> None:
    """Have the sources of other queries wait for a query that is about to run."""
    with contextlib.suppress(*LOST):
        jvm = classes_of(session)
        sources = jvm.java.util.HashSet()
        for topic in link.sources:
            sources.add(topic)
        jvm.ksql.Progress.announce(name, link.query or name, sources, link.sink, link.begun, now_ms)


def forget_progress(session: SparkSession, name: str, begun: int) -> None:
    """Have the sources of other queries wait no longer for a query that is ended for good.

    ``begun``: a link of it that says less is older.
    """
    with contextlib.suppress(*LOST):
        jvm = classes_of(session)
        jvm.ksql.Progress.forget(name, begun)


def stop_progress(session: SparkSession, name: str, now_ms: int) -> None:
    """Let the sources of other queries know that one does not run, and perhaps never did."""
    with contextlib.suppress(*LOST):
        jvm = classes_of(session)
        jvm.ksql.Progress.stop(name, now_ms)


def physical_plan(query: StreamingQuery) -> str:
    """Return Spark's plan of the last batch; the public way prints it. Empty before one."""
    try:
        plan = str(query._jsq.explainInternal(False))  # noqa: SLF001 - see above
    except LOST as lost:
        raise_if_java(lost)
        return ""
    return plan.strip() if plan.startswith("==") else ""


def has_looked(query: StreamingQuery) -> bool:
    """Return whether a first trigger has ended, with a batch or with nothing to do."""
    try:
        return query._jsq.lastProgress() is not None  # noqa: SLF001 - the public way parses it
    except LOST as lost:
        raise_if_java(lost)
        return False


def batches_after(query: StreamingQuery, moment: str) -> list[dict[str, Any]]:
    """Return Spark's reports of the batches that began after that moment; it forgets old ones.

    A trigger that found nothing may be reported under the number of the batch that follows.

    The public way turns every number of every batch that Spark remembers into an object by calls
    of their own.
    """
    java: Any = query._jsq  # noqa: SLF001 - see above
    try:
        client = java._gateway_client  # noqa: SLF001 - see above
        batches_after = JavaMember("batchesAfter", None, f"{STATIC_PREFIX}ksql.Queries", client)
        batches: list[dict[str, Any]] = orjson.loads(batches_after(java, moment))
    except LOST as lost:
        raise_if_java(lost)
        return []
    return batches


def end_needless_monitors(session: SparkSession) -> int:
    """End the threads that Spark leaves behind, one for every start of a stateful query.

    Each looks for idle workers of a factory that keeps none, for as long as the process lives. A
    query that is tried again every minute would use up the machine's threads in days.

    Returns: how many.
    """
    jvm = classes_of(session)
    needless = [
        thread
        for thread in jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()
        if thread.getClass().getName() == _MONITOR
        and not getattr(thread, f"{_OUTER}$$outer")().useDaemonEnabled()
    ]
    silence = _no_handler(session) if needless else None
    for thread in needless:
        thread.setUncaughtExceptionHandler(silence)  # the interrupt ends it by an error
        thread.interrupt()
    return len(needless)


def forget_socket_files(session: SparkSession) -> int:
    """Have the JVM forget the files of sockets that are gone, of which it notes each task's.

    Returns: how many.
    """
    jvm = classes_of(session)
    return int(jvm.ksql.SocketFiles.forget())


def _no_handler(session: SparkSession) -> Any:
    """Return a Java object that takes a thread's last error and does nothing."""
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - see above
    lang, invoke = gateway.jvm.java.lang, gateway.jvm.java.lang.invoke
    named = lang.Class.forName
    error = gateway.new_array(lang.Class, 1)
    error[0] = named("java.lang.Throwable")
    shape = invoke.MethodType.methodType(lang.Void.TYPE, named("java.lang.Thread"), error)
    handler = named("java.lang.Thread$UncaughtExceptionHandler")
    return invoke.MethodHandleProxies.asInterfaceInstance(
        handler, invoke.MethodHandles.empty(shape)
    )


@contextmanager
def scheduling_pool(session: SparkSession, name: str, weight: int = FULL_SHARE) -> Iterator[None]:
    """Let the jobs of a query that is started inside take turns with other queries' jobs.

    ``weight``: how many tasks of it may run for each one of a query of weight 1, where both wait.
    """
    context = session.sparkContext
    _weigh(session, name, weight)
    context.setLocalProperty("spark.scheduler.pool", name)
    try:
        yield
    finally:
        context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type] # unset


def _weigh(session: SparkSession, name: str, weight: int) -> None:
    """Make a pool of that weight whose jobs wait no longer than younger ones; one with jobs stays.

    Spark takes weights only from a file.
    """
    java: Any = session.sparkContext._jsc  # noqa: SLF001 - see above
    try:
        jvm = classes_of(session)
        root = java.sc().taskScheduler().rootPool()
        pool = root.getSchedulableByName(name)
        if pool is not None:
            if pool.weight() == weight or not pool.schedulableQueue().isEmpty():
                return
            root.removeSchedulable(pool)
        root.addSchedulable(jvm.ksql.OldestFirstPool(name, weight))
    except LOST as lost:
        raise_if_java(lost)
