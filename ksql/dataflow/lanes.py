"""Which partition of Kafka Streams' a record is in at a stage: its lane.

Rows that keep their key stay in the partition that they come from, unless their source's topic has
the windows of a key in several. Other rows go where a repartition topic would have them: by the
bytes of the key. Stream time is counted per lane.
Source: Kafka Streams' tasks; docs/sql/windows.md#time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.analysis import bound as b
from ksql.analysis.bound import type_of
from ksql.base.errors import StatementError
from ksql.dataflow.chain import KeyedJoin
from ksql.dataflow.keybytes import KeyBytes, group_columns, key_bytes
from ksql.formats.schema_registry import MemoryRegistry
from ksql.formats.table import validate
from ksql.plan.nodes import Aggregate
from ksql.types.format import Format, capabilities
from ksql.types.schema import WINDOW_COLUMNS, Column, Role

if TYPE_CHECKING:
    from ksql.analysis.bound import Bound
    from ksql.dataflow.layout import Arm, Layout, Stage


def key_format(cut: Layout, stage: Stage) -> Format:
    """Return the format of the keys under which rows meet at a stage.

    It is that of the first arm that keeps its key, else the first one's: ksqlDB's choice for what
    it repartitions.
    """
    first = next((arm for arm in stage.arms if keeps_key(stage, arm)), stage.arms[0])
    return _format_of(cut, first)


def keeps_key(stage: Stage, arm: Arm) -> bool:
    """Return whether rows of an arm meet under the key that they have."""
    shape = arm.flow.entry.shape
    names = [shape.names[index] for index in shape.keys]
    had = [name for name in names if name not in WINDOW_COLUMNS]
    key = _key(stage, arm)
    return had == [part.name if isinstance(part, b.Column) else None for part in key]


def moves(cut: Layout, stage: Stage, arm: Arm) -> KeyBytes | None:
    """Return the bytes by which rows of an arm find their lane; None if they stay where they are.

    Rows that meet others that have moved must be found by the same bytes. A registered schema's id
    is a part of those, and known to no plan: then all arms move, by their packed keys.
    """
    key_form = key_format(cut, stage)
    staying = [candidate for candidate in stage.arms if _stays(cut, stage, candidate, key_form)]
    if arm in staying and (len(staying) == len(stage.arms) or not _registered(key_form)):
        return None
    columns = _columns(stage, arm)
    return key_bytes(_fitting(key_form, columns), columns)


def join_order(cut: Layout, stage: Stage) -> KeyBytes:
    """Return the bytes by which a join orders its keys."""
    columns = _columns(stage, stage.arms[0])
    return key_bytes(_fitting(key_format(cut, stage), columns), columns, MemoryRegistry())


def _stays(cut: Layout, stage: Stage, arm: Arm, key_form: Format) -> bool:
    entry = arm.flow.entry
    if entry.kind == "source" and cut.sources[entry.index].scattered:
        return False
    own = _format_of(cut, arm)
    same = (own.name, own.delimiter) == (key_form.name, key_form.delimiter)
    return same and keeps_key(stage, arm)


def _format_of(cut: Layout, arm: Arm) -> Format:
    """Return the format of an arm's keys before they come to its stage."""
    entry = arm.flow.entry
    if entry.kind == "source":
        return cut.sources[entry.index].key_format
    return key_format(cut, cut.stages[entry.index])


def _registered(format_: Format) -> bool:
    return capabilities(format_.name).infers


def _key(stage: Stage, arm: Arm) -> tuple[Bound, ...]:
    """Return the key without the bounds of a window: a join's is one value."""
    return arm.key[:1] if isinstance(stage.node, KeyedJoin) else arm.key


def _columns(stage: Stage, arm: Arm) -> tuple[Column, ...]:
    if isinstance(stage.node, Aggregate):
        return group_columns(stage.node)
    parts = enumerate(_key(stage, arm))
    return tuple(Column(f"K{index}", type_of(part), Role.KEY) for index, part in parts)


def _fitting(format_: Format, columns: tuple[Column, ...]) -> Format:
    """Return the format, or JSON where it cannot hold the columns."""
    try:
        validate(format_, columns, "key")
    except StatementError:
        return Format("JSON")
    return format_
