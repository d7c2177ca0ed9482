"""Which job has the next free core."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from pyspark import TaskContext

from ksql.spark.query.internals import scheduling_pool
from tests.spark.programs import await_opened
from tests.waits import await_true


def run(session, pool, count, work):
    """Run a job of so many tasks in a pool of that name."""
    with scheduling_pool(session, pool):
        session.range(0, count, 1, count).mapInArrow(work, "id BIGINT").collect()


class AtGate:
    """Each task waits at a gate of its own."""

    def __init__(self, gates):
        self.gates = gates

    def __call__(self, batches):
        await_opened(self.gates[TaskContext.get().partitionId()])
        yield from batches


class Noting:
    """Writes down that it runs."""

    def __init__(self, file, name):
        self.file, self.name = file, name

    def __call__(self, batches):
        with self.file.open("a") as file:
            file.write(self.name)
        yield from batches


def test_where_all_cores_are_taken_the_oldest_job_is_the_next_whatever_its_name(runtime, tmp_path):
    session, order = runtime.session, tmp_path / "order"
    root = session.sparkContext._jsc.sc().taskScheduler().rootPool()
    gates = [tmp_path / f"gate{n}" for n in range(session.sparkContext.defaultParallelism)]
    for gate in gates:
        gate.mkdir()

    def waits(pool):
        known = root.getSchedulableByName(pool)
        return known is not None and not known.schedulableQueue().isEmpty()

    with ThreadPoolExecutor() as threads:
        try:
            jobs = [threads.submit(run, session, "m", len(gates), AtGate(gates))]
            await_true("all cores are taken", lambda: all((g / "reached").exists() for g in gates))
            for pool in ("z", "y", "a"):
                jobs.append(threads.submit(run, session, pool, 1, Noting(order, pool)))
                await_true("a job waits", partial(waits, pool))
            (gates[0] / "open").touch()
            for job in jobs[1:]:
                job.result()
        finally:
            for gate in gates:
                (gate / "open").touch()
        jobs[0].result()
    assert order.read_text() == "zya"
