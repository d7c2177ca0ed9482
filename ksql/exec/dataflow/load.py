"""Makes a stored plan a program, with the user functions and registry that travel with it.

User functions travel with a plan, and so does the address of the schema registry.

The texts of the functions' files travel, so an executor on another machine needs no copy of the
directory. An executor that lives on across an upgrade never runs old code: another text is another
program.
"""

from __future__ import annotations

import json
from dataclasses import astuple
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ksql.core import KsqlError
from ksql.exec.dataflow.compiled import Compiled, writing
from ksql.functions import BUILTINS, Functions, load_sources
from ksql.functions.user import CallWatch, Limits, watched
from ksql.sql.plan import QueryPlan, codec
from ksql.sql.upgrade import as_run, other_code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.core import OutRecord
    from ksql.formats import Registry
    from ksql.kafka import RegistrySettings


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


class Unpacked(NamedTuple):
    """A stored plan, the functions that it may call, the registry of its formats."""

    plan: str
    functions: Functions
    registry: Registry | None


def packed(
    plan_json: str,
    sources: Mapping[str, str],
    registry: RegistrySettings | None = None,
    limits: Limits = Limits(),  # noqa: B008 - immutable
) -> str:
    """Return a stored plan together with the texts of the user functions' files and the registry.

    Always wrapped: what a stored plan says of functions must never be taken for ours. ``limits``
    are those of the calls of user functions.
    """
    where = None if registry is None else [registry.url, registry.options]
    body = {"plan": plan_json, "functions": sources, "registry": where, "limits": astuple(limits)}
    return json.dumps(body)


def unpacked(text: str) -> Unpacked:
    """Return the parts that ``packed`` has packed, or a plan alone."""
    body = json.loads(text)
    if body.keys() != {"plan", "functions", "registry", "limits"}:
        return Unpacked(text, BUILTINS, None)  # its codec refuses whatever is no plan alone
    sources = json.dumps(body["functions"], sort_keys=True)
    functions = extended(sources, Limits(*body["limits"]))
    return Unpacked(body["plan"], functions, _registry(body["registry"]))


def _registry(where: list[Any] | None) -> Registry | None:
    if where is None:
        return None
    from ksql.kafka import RegistrySettings, registry_of  # noqa: PLC0415 - brings an HTTP client

    url, options = where
    return registry_of(RegistrySettings(url, tuple((name, value) for name, value in options)))


@lru_cache(maxsize=8)
def extended(sources_json: str, limits: Limits) -> Functions:
    """Return the built-in functions and those of the files, whose calls are watched.

    Files that cannot be loaded were reported at the start.
    """
    functions, _problems = load_sources(json.loads(sources_json))
    watch = CallWatch(limits)
    return BUILTINS.with_(watched(one, watch) for one in functions)
