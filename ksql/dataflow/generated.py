"""The code of a query as text, for EXPLAIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.base.codegen import gathered
from ksql.dataflow.compiled import answering, writing

if TYPE_CHECKING:
    from ksql.formats.schema_registry import Registry
    from ksql.functions.registry import Functions
    from ksql.plan.nodes import QueryPlan


def generated_code(plan: QueryPlan, functions: Functions, registry: Registry | None) -> str:
    """Return the Python code that is generated for a plan, in the order in which it is compiled.

    Readers and writers that follow a registered schema are not shown: they are generated when the
    first record with that schema comes.
    """
    with gathered() as sources:
        (answering if plan.sink.topic is None else writing)(plan, functions, registry)
    texts = dict.fromkeys((source.subject, source.text) for source in sources)
    return "\n\n".join(f"# {subject}\n{text.rstrip()}" for subject, text in texts)
