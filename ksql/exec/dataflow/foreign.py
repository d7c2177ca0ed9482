"""A foreign-key join in three stages, and their processors.

Left rows come in under their primary key, go to the foreign key, and their results come back. The
processors themselves key the results of the first two stages (``StageInput.keyed``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from ksql.core.types import Format, Role
from ksql.exec.dataflow.partitioning.keybytes import key_bytes
from ksql.exec.operators.joining.foreign import LastResults, SubscriptionSender, SubscriptionStore
from ksql.exec.operators.joining.join_layout import Side
from ksql.formats import MemoryRegistry
from ksql.sql.plan import ForeignKeyJoin, Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.exec.dataflow.layout import StageInput
    from ksql.exec.operators.base import Processor


class ForeignInputs(NamedTuple):
    """All ways of a foreign-key join.

    The left source's rows go to the first stage and from there to the second one, where the right
    source's rows come in. From there they go to the third.
    """

    left: StageInput
    subscriptions: StageInput
    right: StageInput
    answered: StageInput


@dataclass(frozen=True, slots=True)
class ForeignStep:
    """One of the stages, named after what it keeps."""

    join: ForeignKeyJoin
    keeps: Literal["references", "rows", "results"]
    stage_inputs: ForeignInputs


def foreign_step(step: ForeignStep) -> Processor:
    """Return the processor of a stage."""
    outer = step.join.kind == "LEFT"
    _, left, right, answered = (
        Side(stage_input.port, stage_input.parts) for stage_input in step.stage_inputs
    )
    match step.keeps:
        case "references":
            return SubscriptionSender(outer, left.port, answered.port, right.width)
        case "rows":
            return SubscriptionStore(left, right, outer, answered.port, bytes_of_key(step.join))
        case "results":
            return LastResults(answered)


def bytes_of_key(join: ForeignKeyJoin) -> Callable[[bytes], bytes]:
    """Return what gives the left table's packed keys as its topic has them: they order its rows.

    Schemas' ids are left out of account: a registry of its own gives the one id for all keys.
    """
    assert isinstance(join.left, Source)  # noqa: S101 - binding refuses anything else
    key_format = join.left.key_format
    columns = tuple(column for column in join.left.columns if column.role is Role.KEY)
    plain = Format(key_format.name, delimiter=key_format.delimiter)
    return key_bytes(plain, columns, MemoryRegistry())
