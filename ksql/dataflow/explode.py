"""Table functions over a batch: rows in, more or fewer rows out."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from ksql.analysis.bound import type_of
from ksql.compile.errors import cause
from ksql.functions.instantiate import instantiate_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.base.records import Row
    from ksql.compile.compile import Projection
    from ksql.dataflow.flow import Explosion
    from ksql.functions.registry import Functions
    from ksql.plan.nodes import TableCall
    from ksql.processors.base import LogError

LABEL = "FlatMap"


class Exploder:
    """Runs the calls of a step; ``projection`` gives their arguments, or None for rows it drops.

    Calls are zipped: the shorter lists end in NULLs. A call that fails gives no values and is
    logged.
    """

    def __init__(self, explosion: Explosion, projection: Projection, functions: Functions) -> None:
        self._arguments = projection.batch
        self._calls: list[tuple[str, Callable[..., list[Any]], slice]] = []
        start = 0
        for call in explosion.calls:
            end = start + len(call.args)
            self._calls.append((call.function, _rows(call, functions), slice(start, end)))
            start = end

    def rows(self, rows: Sequence[Row], log: LogError) -> tuple[list[Row], list[int]]:
        """Return the rows that follow, and for each the place of the row from which it does."""
        out: list[Row] = []
        places: list[int] = []
        arguments = self._arguments(rows, log)
        for index, (row, args) in enumerate(zip(rows, arguments, strict=True)):
            if args is None:
                continue
            lists = [self._called(call, args, row, log) for call in self._calls]
            exploded = [(*row, *values) for values in zip_longest(*lists)]
            out += exploded
            places += [index] * len(exploded)
        return out, places

    @staticmethod
    def _called(
        call: tuple[str, Callable[..., list[Any]], slice], args: Row, row: Row, log: LogError
    ) -> list[Any]:
        name, function, own = call
        try:
            return function(*args[own])
        except Exception as error:  # noqa: BLE001 - whatever a function raises is logged
            log(LABEL, f"Table function {name} threw an exception: {cause(error)}", row)
            return []


def _rows(call: TableCall, functions: Functions) -> Callable[..., list[Any]]:
    function = functions.get(call.function)
    return instantiate_table(function, call.overload, [type_of(arg) for arg in call.args])
