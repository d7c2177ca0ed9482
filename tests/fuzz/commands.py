"""Stored commands in which somebody else has written: none of it runs."""

from __future__ import annotations

import builtins
import json
from functools import cache
from typing import TYPE_CHECKING

from ksql.control.log.record import encode
from ksql.core.errors import KsqlError
from tests.unit.control.log import test_forged as forged
from tests.unit.world import World

if TYPE_CHECKING:
    import random
    from collections.abc import Callable


@cache
def _corpus():
    commands = World(forged.SCRIPT).log.commands
    befores = forged.catalogs(commands)
    entries = []
    for before, command in zip(befores, commands, strict=False):
        key, text = encode(command)
        body = json.loads(text)
        entries += [(before, key, body, path) for path in forged.places(body)]
    return entries


def attempt(chance: random.Random) -> tuple[object, Callable[[], bool]]:
    """A command with one leaf changed, in it or in its plan."""
    before, key, body, path = chance.choice(_corpus())
    payload = chance.choice(forged.PAYLOADS)
    if path[-1] == "plan":
        plan = json.loads(forged.at(body, path))
        inner = chance.choice(list(forged.places(plan)))
        payload = json.dumps(forged.with_(plan, inner, payload))

    def read() -> bool:
        outcome = forged.outcome(before, key, forged.with_(body, path, payload))
        if hasattr(builtins, forged.BREACH):
            delattr(builtins, forged.BREACH)
            raise AssertionError("forged code ran")
        return not isinstance(outcome, KsqlError)

    return (path, payload), read
