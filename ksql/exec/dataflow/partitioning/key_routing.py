"""Decides which stream partition of Kafka Streams' a record is in at a stage: its lane.

Rows that keep their key stay in the partition that they come from, unless their source's topic has
the windows of a key in several. Other rows go where a repartition topic would have them: by the
bytes of the key. Stream time is counted per lane.
Source: Kafka Streams' tasks; docs/sql/windows.md#time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import StatementError
from ksql.core.types import WINDOW_COLUMNS, Column, Format, Role, capabilities
from ksql.exec.dataflow.layout import KeyedJoin, Layout, Stage, StageInput
from ksql.exec.dataflow.partitioning.keybytes import KeyBytes, group_columns, key_bytes
from ksql.formats import MemoryRegistry, validate
from ksql.sql.binder import bound as b
from ksql.sql.binder import type_of
from ksql.sql.plan import Aggregate

if TYPE_CHECKING:
    from ksql.sql.binder import Bound


def key_format(program_layout: Layout, stage: Stage) -> Format:
    """Return the format of the keys under which rows meet at a stage.

    It is that of the first input that keeps its key, else the first one's: ksqlDB's choice for what
    it repartitions.
    """
    first = next(
        (stage_input for stage_input in stage.stage_inputs if keeps_key(stage, stage_input)),
        stage.stage_inputs[0],
    )
    return _format_of(program_layout, first)


def keeps_key(stage: Stage, stage_input: StageInput) -> bool:
    """Return whether rows of a stage input meet under the key that they have."""
    shape = stage_input.segment.entry.shape
    names = [shape.names[index] for index in shape.keys]
    had = [name for name in names if name not in WINDOW_COLUMNS]
    key = _key(stage, stage_input)
    return had == [part.name if isinstance(part, b.Column) else None for part in key]


def moves(program_layout: Layout, stage: Stage, stage_input: StageInput) -> KeyBytes | None:
    """Return the bytes by which rows of an input find their lane; None if they stay where they are.

    Rows that meet others that have moved must be found by the same bytes. A registered schema's id
    is a part of those, and known to no plan: then all inputs move, by their packed keys.
    """
    key_form = key_format(program_layout, stage)
    staying = [
        candidate
        for candidate in stage.stage_inputs
        if _stays(program_layout, stage, candidate, key_form)
    ]
    if stage_input in staying and (
        len(staying) == len(stage.stage_inputs) or not _registered(key_form)
    ):
        return None
    columns = _columns(stage, stage_input)
    return key_bytes(_fitting(key_form, columns), columns)


def join_order(program_layout: Layout, stage: Stage) -> KeyBytes:
    """Return the bytes by which a join orders its keys."""
    columns = _columns(stage, stage.stage_inputs[0])
    return key_bytes(
        _fitting(key_format(program_layout, stage), columns), columns, MemoryRegistry()
    )


def _stays(program_layout: Layout, stage: Stage, stage_input: StageInput, key_form: Format) -> bool:
    entry = stage_input.segment.entry
    if entry.kind == "source" and program_layout.sources[entry.index].scattered:
        return False
    own = _format_of(program_layout, stage_input)
    same = (own.name, own.delimiter) == (key_form.name, key_form.delimiter)
    return same and keeps_key(stage, stage_input)


def _format_of(program_layout: Layout, stage_input: StageInput) -> Format:
    """Return the format of a stage input's keys before they come to its stage."""
    entry = stage_input.segment.entry
    if entry.kind == "source":
        return program_layout.sources[entry.index].key_format
    return key_format(program_layout, program_layout.stages[entry.index])


def _registered(format_: Format) -> bool:
    return capabilities(format_.name).infers


def _key(stage: Stage, stage_input: StageInput) -> tuple[Bound, ...]:
    """Return the key without the bounds of a window: a join's is one value."""
    return stage_input.key[:1] if isinstance(stage.node, KeyedJoin) else stage_input.key


def _columns(stage: Stage, stage_input: StageInput) -> tuple[Column, ...]:
    if isinstance(stage.node, Aggregate):
        return group_columns(stage.node)
    parts = enumerate(_key(stage, stage_input))
    return tuple(Column(f"K{index}", type_of(part), Role.KEY) for index, part in parts)


def _fitting(format_: Format, columns: tuple[Column, ...]) -> Format:
    """Return the format, or JSON where it cannot hold the columns."""
    try:
        validate(format_, columns, "key")
    except StatementError:
        return Format("JSON")
    return format_
