"""Stateful operators as plain Python over a small store."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.exec.operators import keys
    from ksql.exec.operators.base import *
    from ksql.exec.operators.folds import *
    from ksql.exec.operators.keyed_batches import *
    from ksql.exec.operators.memory import *
    from ksql.exec.operators.order import SequenceKeys
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "base": "BadResult LateRecord Record",
            "folds": "Folds Slot State compile_folds",
            "keyed_batches": "KeyedBatch Queues parts_of",
            "memory": "Bound BoundedStore SETTING TooMuchState estimate",
            "order": "SequenceKeys",
        },
    )
