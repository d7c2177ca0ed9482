"""Sends the results of a stage to the next one, with the keys that they have there.

A table's change becomes one record if its old and its new row have one key, else two, the old one's
first. On the way to an aggregate that is so since KIP-904. With ``ksql.upgrade.from`` the two rows
are two records in any case, as in the versions of Kafka Streams before that. Then an aggregate
gives a result after the first of them, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.exec.operators.base import LogError, Record
from ksql.exec.operators.keys import pack
from ksql.sql.plan import Aggregate, QueryPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ksql.core import Row
    from ksql.exec.dataflow.layout import Stage, StageInput
    from ksql.exec.dataflow.stage_inputs import KeyedInput

UPGRADE_FROM = "ksql.upgrade.from"
_NONE = "none"
_new = tuple.__new__


def upgrade_from(plan: QueryPlan) -> str | None:
    """Return the version of Kafka Streams as whose a plan sends changes; None is the newest."""
    version = dict(plan.settings).get(UPGRADE_FROM, _NONE).lower()
    return None if version == _NONE else version


def sending(plan: QueryPlan) -> str:
    """Describe how a plan sends changes."""
    version = upgrade_from(plan)
    if version is None:
        return "old and new row of a group in one record (KIP-904)"
    return f"old and new row in records of their own ({UPGRADE_FROM} = {version})"


def regroups(stage: Stage, stage_input: StageInput) -> bool:
    """Return whether changes of a table are on their way to the groups of an aggregate."""
    return isinstance(stage.node, Aggregate) and stage_input.segment.table


def regrouped(
    stage_input: KeyedInput, results: Iterable[Record], log: LogError, *, apart: bool
) -> list[Record]:
    """Return a stage's results on their way to the next one.

    ``apart``: an old and a new row are never in one record.
    """
    records = list(results)
    news = _projected(stage_input, [record.row for record in records], log)
    olds = _projected(stage_input, [record.old for record in records], log)
    port, width, plain = stage_input.port, stage_input.width, stage_input.plain_key
    no_key = pack((None,) * width)
    out: list[Record] = []
    for record, new, old in zip(records, news, olds, strict=True):
        _, _, row, time, topic, partition, offset, headers, before, sequence_key, lane = record
        # the tuple's own constructor: every change of a table passes here
        if new is not None and old is not None and not apart:
            key, former = new[:width], old[:width]
            packed = pack(key)
            if (key == former) if plain else (packed == pack(former)):
                change = (
                    new[width:],
                    time,
                    topic,
                    partition,
                    offset,
                    headers,
                    old[width:],
                    sequence_key,
                )
                out.append(_new(Record, (port, packed, *change, lane)))
                continue
        if old is not None:
            gone = None, time, topic, partition, offset, headers, old[width:], sequence_key
            out.append(_new(Record, (port, pack(old[:width]), *gone, lane)))
        if new is not None:
            come = new[width:], time, topic, partition, offset, headers, None, sequence_key
            out.append(_new(Record, (port, pack(new[:width]), *come, lane)))
        elif row is None and before is None:
            if stage_input.unknown:
                out.append(record._replace(port=port))
        elif stage_input.ticks:  # it has no key there, but the join learns how late it is
            out.append(record._replace(port=port, key=no_key, row=None))
    return stage_input.laned(out, [record.lane for record in out]) if stage_input.lanes else out


def _projected(
    stage_input: KeyedInput, rows: Sequence[Row | None], log: LogError
) -> Sequence[Row | None]:
    """Return key columns, then what is carried, for each row; None stays: it goes nowhere."""
    there = [row for row in rows if row is not None]
    if len(there) == len(rows):
        return stage_input.projected(there, log)
    projected = iter(stage_input.projected(there, log) if there else ())
    return [None if row is None else next(projected) for row in rows]
