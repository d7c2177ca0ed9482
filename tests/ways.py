"""The way of a request through the packages, followed while it runs.

A package is left when one of its functions calls another package. A climb is a call back into a
package that has been left and waits for an answer: a callback, or a detour over its caller. What
is called more than once on a way counts once; what is generated or made by ``dataclass`` does not.

    python -m tests.ways
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.unit.serving.test_query_service import Counted
from tests.unit.spark.query.test_runner import Desk
from tests.unit.world import World

if TYPE_CHECKING:
    from types import FrameType

_OWN = ("ksql", "server", "qtt")
STATEMENT = "CREATE TABLE {name} AS SELECT A, COUNT(*) AS N FROM S WHERE A > 1 GROUP BY A;"
PULL = "SELECT K, C FROM T WHERE K = '{key}';"


@dataclass(frozen=True)
class Function:
    """A function of the product."""

    module: str
    name: str

    @property
    def package(self) -> str:
        return ".".join(self.module.split(".")[: 2 if self.module.startswith("ksql.") else 1])

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


@dataclass(frozen=True)
class Call:
    """A call from one package into another one."""

    caller: Function
    called: Function

    def __str__(self) -> str:
        return f"{self.caller} -> {self.called}"


@dataclass(frozen=True)
class Way:
    """The functions that a request calls, and the calls between packages, in their order."""

    functions: frozenset[Function]
    calls: tuple[Call, ...]
    climbs: tuple[Call, ...]

    def __str__(self) -> str:
        modules = {function.module for function in self.functions}
        packages = {function.package for function in self.functions}
        return (
            f"{len(self.functions)} functions of {len(modules)} modules in {len(packages)} "
            f"packages, {len(self.calls)} calls between packages, {len(self.climbs)} climbs"
        )


def followed(work: Callable[[], object]) -> Way:
    """The way of a call, in its own thread."""
    functions: set[Function] = set()
    calls: dict[Call, bool] = {}

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        called = _function(frame) if event == "call" else None
        if called is None:
            return
        functions.add(called)
        above = [f for f in map(_function, _callers(frame)) if f is not None]
        if above and above[0].package != called.package:
            waiting = {function.package for function in above}
            calls.setdefault(Call(above[0], called), called.package in waiting)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    climbs = tuple(call for call, is_climb in calls.items() if is_climb)
    return Way(frozenset(functions), tuple(calls), climbs)


def _callers(frame: FrameType) -> list[FrameType]:
    frames, caller = [], frame.f_back
    while caller is not None:
        frames.append(caller)
        caller = caller.f_back
    return frames


def _function(frame: FrameType) -> Function | None:
    code, module = frame.f_code, frame.f_globals.get("__name__", "")
    if code.co_filename.startswith("<") or module.partition(".")[0] not in _OWN:
        return None
    return Function(module, code.co_qualname)


def statement(folder: Path) -> Way:
    """The way of a CREATE TABLE .. AS SELECT from its text to Spark, which is a fake."""
    desk = Desk(folder)
    stream = "CREATE STREAM S (A INT, B INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
    world = World(stream, runner=lambda _topics: desk.runner)
    world.run(STATEMENT.format(name="BEFORE"))  # what is kept of one is there for the next
    return followed(lambda: world.run(STATEMENT.format(name="T")))


def pull(folder: Path) -> Way:
    """The way of a pull query by key from its text to the store, without a plan that is kept."""
    folder.mkdir()
    table = Counted(folder, 10)
    try:

        def ask(key: str, **properties: str) -> None:
            query = table.open(text=PULL.format(key=key), **properties)
            assert sum(map(len, query.batches())) == 1
            query.close()

        ask("a")
        return followed(lambda: ask("b", **{"ksql.query.pull.max.allowed.offset.lag": "5"}))
    finally:
        table.store.close()


def main() -> None:
    """Print the ways."""
    with tempfile.TemporaryDirectory() as folder:
        for name, way in (
            ("CREATE TABLE .. AS SELECT", statement(Path(folder) / "statement")),
            ("pull query", pull(Path(folder) / "pull")),
        ):
            sys.stdout.write(f"{name}: {way}\n")
            for climb in way.climbs:
                sys.stdout.write(f"  climbs: {climb}\n")


if __name__ == "__main__":
    main()
