"""Makes a plan's program without effects: nothing is written, remembered, registered or logged.

So a new plan shows whether it can work on the records that wait, before it takes an old one's
place. Stateful operators begin without state: their results are worthless, their errors are not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.exec.dataflow.compiled import answering
from ksql.exec.dataflow.load import program_of, unpacked
from ksql.exec.operators.memory import MemoryStore
from ksql.formats import MutedRegistry
from ksql.sql.plan import QueryPlan, codec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.core import OutRecord
    from ksql.exec.dataflow.program import Out, Program, RawBatch, Result
    from ksql.exec.operators.base import LogError, Record
    from ksql.formats import Registry
    from ksql.functions import Functions


def load(text: str) -> Program[OutRecord]:
    """Return the program of a stored plan, packed or alone (``TaskEnvironment.loader``).

    Raises: KsqlError.
    """
    stored = unpacked(text)
    return program(codec.loads(stored.plan, stored.functions), stored.functions, stored.registry)


def program(plan: QueryPlan, functions: Functions, registry: Registry | None) -> Program[OutRecord]:
    """Return a plan's program that registers no schema, and takes all lanes together.

    Raises: KsqlError.
    """
    silent = None if registry is None else MutedRegistry(registry)
    return program_of(replace(plan, lanes=min(plan.lanes, 1)), functions, silent)


def answering_program(
    plan: QueryPlan, functions: Functions, registry: Registry | None
) -> Program[Result]:
    """Return the same as a program whose results are rows: they are looked at, never written.

    Raises: KsqlError.
    """
    silent = None if registry is None else MutedRegistry(registry)
    return answering(replace(plan, lanes=min(plan.lanes, 1)), functions, silent)


def results(
    program: Program[Out], tasks: Iterable[Iterable[RawBatch]], log: LogError
) -> Iterable[Out]:
    """Yield the results of one micro-batch, given by the batches that each of its tasks reads.

    Raises: whatever would end the query.
    """
    if not program.stages:
        for batches in tasks:
            for batch in batches:
                yield from program.straight(batch, log)
        return
    records: list[Record] = []
    for batches in tasks:
        ingest = program.ingest()
        for batch in batches:
            records += ingest.add(batch, log)
        records += ingest.finish()
    for stage in range(program.stages - 1):
        records = list(program.step(stage, records, MemoryStore(), log)) if records else []
    if records:
        yield from program.last_step(records, MemoryStore(), log)
