"""A stored plan made ready to run; the same in Spark's workers, in push queries and in memory."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ksql.base.errors import KsqlError
from ksql.dataflow.compiled import Compiled, writing
from ksql.dataflow.extensions import unpacked
from ksql.plan import codec
from ksql.upgrade.code import as_run, other_code

if TYPE_CHECKING:
    from ksql.base.records import OutRecord
    from ksql.formats.schema_registry import Registry
    from ksql.functions.registry import Functions
    from ksql.plan.nodes import QueryPlan


@lru_cache(maxsize=128)
def load(text: str) -> Compiled[OutRecord]:
    """Return the program of a stored plan, alone or with user functions and the registry.

    Compiled once per process and text.
    """
    unpacked_plan = unpacked(text)
    return program_of(
        codec.loads(unpacked_plan.plan, unpacked_plan.functions),
        unpacked_plan.functions,
        unpacked_plan.registry,
    )


def program_of(
    plan: QueryPlan, functions: Functions, registry: Registry | None = None
) -> Compiled[OutRecord]:
    """Return the program of a plan that was stored, over functions that may have other code now.

    Raises: UnreadablePlan if it makes no sense, although every part of it is of its type; what else
        refuses a plan.
    """
    try:
        return writing(as_run(plan, other_code(plan, functions)), functions, registry)
    except KsqlError:
        raise
    except Exception as error:
        raise codec.UnreadablePlan(
            f"the stored plan of {plan.query_id} cannot be run",
            detail=f"{type(error).__name__}: {error}",
        ) from error
