"""User functions on their way to where plans run: the texts of their files travel with the plan.

So an executor on another machine needs no copy of the directory, and one that lives on across an
upgrade never runs old code: another text is another program.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from ksql.functions.registry import BUILTINS, Functions
from ksql.functions.udf import load_sources

if TYPE_CHECKING:
    from collections.abc import Mapping


def with_functions(plan_json: str, sources: Mapping[str, str]) -> str:
    """A stored plan together with the texts of the user functions' files."""
    return json.dumps({"plan": plan_json, "functions": sources}) if sources else plan_json


def unpacked(text: str) -> tuple[str, Functions]:
    """The stored plan and the functions that it may call."""
    body = json.loads(text)
    if "functions" not in body:
        return text, BUILTINS
    return body["plan"], extended(json.dumps(body["functions"], sort_keys=True))


@lru_cache(maxsize=8)
def extended(sources_json: str) -> Functions:
    """The built-in functions and those of the files.

    Files that cannot be loaded were reported at the start.
    """
    functions, _problems = load_sources(json.loads(sources_json))
    return BUILTINS.with_(functions)
