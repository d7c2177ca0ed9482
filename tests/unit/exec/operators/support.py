"""Aggregates, records and logs for the tests of the processors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ksql.core.types.model import BIGINT
from ksql.exec.operators.base import Record
from ksql.exec.operators.folds import Slot
from ksql.exec.operators.keys import pack
from ksql.exec.operators.order import SequenceKeys
from ksql.functions.instantiate import instantiate_aggregate
from ksql.functions.registry import BUILTINS
from ksql.functions.spec import AggregateFunction
from tests.unit.functions.overloads import nth

COUNT = instantiate_aggregate(BUILTINS.get("COUNT"), nth(BUILTINS.get("COUNT"), 0), [], (), {})
SUM = instantiate_aggregate(BUILTINS.get("SUM"), nth(BUILTINS.get("SUM"), 1), [BIGINT], (), {})
FUSSY = AggregateFunction(
    ("BIGINT",),
    "BIGINT",
    init=lambda: 0,
    step=lambda s, x: s + refused(x),
    undo=lambda s, x: s - x,
    merge=lambda s, o: s + o,
)
"""A sum that refuses 13."""


def even(total):
    """The result of an aggregate that has none for odd sums."""
    if total % 2:
        raise ValueError("odd")
    return total


PICKY = replace(FUSSY, result=even)
"""A sum that shows nothing while it is odd."""


def refused(value):
    if value == 13:
        raise ValueError("thirteen")
    return value


def slots(*functions):
    """Slots 0, 1, ..; functions with parameters read the row's columns in turn."""
    slots_, column = [], 0
    for number, function in enumerate(functions):
        width = len(function.params)
        slots_.append(Slot(number, function, tuple(range(column, column + width))))
        column += width
    return slots_


def record(key, row, time=0, offset=0, port=0, **more):
    """A record whose key is packed from one value."""
    return Record(port, pack((key,)), row, time, offset=offset, **more)


def in_sequence(records):
    """The records of a micro-batch with the turns that an ingest gives them."""
    sequence_keys = SequenceKeys()
    return [
        each._replace(
            sequence_key=sequence_keys.of(each.topic, [each.partition], [each.timestamp])[0]
        )
        for each in records
    ]


def contents(store):
    """What a store in memory holds: its spaces that are not empty, and their entries."""
    return {space: dict(entries) for space, entries in store._spaces.items() if entries}


class Log(list[Any]):
    """A processing log."""

    def __call__(self, operator, message, row):
        self.append((operator, message, row))
