"""Generated code for the last step after a stream join: filter, project, encode.

It makes the printed document of the two sides' rows, ``left`` and ``right``, the packed ``key``,
the time ``t`` and the headers ``h``. There is no joined row, no projected one, no key and value of
it. A key that is the join's own is encoded once, however many records have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from ksql.core import indent, tuple_of
from ksql.exec.codegen.fused import document_of
from ksql.exec.dataflow.layout import KeyedJoin, Layout, Stage, synthetic, window_columns
from ksql.exec.dataflow.segment import conjunction
from ksql.exec.dataflow.stage_inputs import CompileContext, Encoder
from ksql.exec.expressions.compile import Body, compile_body
from ksql.exec.operators import keys
from ksql.sql.binder import bound as b
from ksql.sql.plan import Sink, StreamStreamJoin, StreamTableJoin

if TYPE_CHECKING:
    from ksql.core import OutRecord

_LABEL = "Project"


class EmittedRows(NamedTuple):
    """Documents to be printed, keys, times and headers, column by column."""

    values: list[Any]
    keys: list[Any]
    times: list[int]
    headers: list[Any]

    @classmethod
    def nothing(cls) -> EmittedRows:
        """Empty columns."""
        return cls([], [], [], [])

    @property
    def adds(self) -> list[Callable[[Any], None]]:
        """The function that adds to each column."""
        return [column.append for column in self]


@dataclass(frozen=True, slots=True)
class Emission:
    """The statements, which name the additions of ``EmittedRows``, and the code of log entries."""

    body: Body
    keep: Sequence[str]
    known: Mapping[str, Any]
    encoder: Encoder
    by_key: bool

    def lines(self, level: int) -> list[str]:
        """Return the statements inside a loop, which they leave early for a row that is dropped."""
        first, *rest = self.keep
        return indent([*self.body.lines(["continue"], first), *rest], level)

    def executed(self, text: str, names: Mapping[str, Any]) -> dict[str, Any]:
        """Execute the text that has these statements; return what it defines."""
        source = [*self.body.code.prologue, *text.splitlines()]
        known = {**self.known, **names, "unpack": keys.unpack}
        return self.body.executed(source, _LABEL, known)

    def records(self, emitted: EmittedRows) -> list[OutRecord]:
        """Encode what was emitted.

        Raises: EncodeError.
        """
        printing = self.encoder.values.printing
        printed = self.encoder.values.encode_many if printing is None else printing.finish
        out_keys = self._keys(emitted.keys)
        headers = emitted.headers if any(emitted.headers) else repeat(None)
        return list(zip(out_keys, printed(emitted.values), emitted.times, headers))  # noqa: B905 - may repeat

    def _keys(self, stage_keys: Sequence[Any]) -> Sequence[bytes | None]:
        encoder = self.encoder
        if not self.by_key:
            return encoder.keys.encode_many(encoder.key_rows(stage_keys))
        if encoder.keys.texts:
            return keys.texts(stage_keys)
        different = list(dict.fromkeys(stage_keys))
        rows = list(map(tuple, keys.unpack_all(different)))
        encoded = encoder.keys.encode_many(encoder.key_rows(rows))
        of_key = dict(zip(different, encoded, strict=True))
        return list(map(of_key.__getitem__, stage_keys))


def emission(
    cut: Layout,
    sink: Sink,
    encoder: Encoder,
    code: CompileContext,
    row: str,
    *,
    left: str = "left[{}]",
    headers: bool = True,
) -> Emission | None:
    """Return the end of a plan whose last stage is one join of a stream; None if it has another.

    ``row`` is the code of what is logged for a joined row, ``left`` that of a column of the left
    side. Without ``headers`` no record has any, and none are emitted.
    """
    stage, exit_ = cut.stages[-1], cut.exit
    join = stage.node
    if stage.before or not isinstance(join, StreamTableJoin | StreamStreamJoin):
        return None
    if exit_.segment.entry.explosion is not None or window_columns(join):
        return None
    if sink.window is not None or sink.timestamp is not None:
        return None
    by_key = is_join_key(stage, join, exit_.key)
    outputs = exit_.value if by_key else (*exit_.key, *exit_.value)
    columns = list(zip(stage.shape.names, _cells(stage, join, left), strict=True))
    where = conjunction(exit_.segment.wheres)
    body = compile_body(columns, row, where, outputs, code.functions, code.settings)
    width = 0 if by_key else len(exit_.key)
    lines, document, known = document_of(body.values[width:], encoder)
    key = "key" if by_key else tuple_of(body.values[:width])
    lines += [f"add_value({document})", f"add_key({key})", "add_time(t)"]
    lines += ["add_header(h)"] if headers else []
    return Emission(body, lines, known, encoder, by_key)


def _cells(stage: Stage, join: KeyedJoin, cell: str) -> list[str]:
    """Return the code of each column of the joined rows; ``cell`` is that of the left ones."""
    left, right = stage.stage_inputs
    cells = [cell.format(index) for index in range(len(left.carried))]
    cells += [f"right[{index}]" for index in range(len(right.carried))]
    return [*cells, *(["unpack(key)[0]"] if synthetic(join) else []), "t"]


def is_join_key(stage: Stage, join: KeyedJoin, key: Sequence[b.Bound]) -> bool:
    """Return whether the sink's key is the one under which the sides meet, whichever has a row."""
    match key:
        case (b.Column(name),) if name in stage.shape.names:
            index, (left, right) = stage.shape.names.index(name), stage.stage_inputs
            width = len(left.carried)
            if index < width:
                return join.kind in ("INNER", "LEFT") and left.carried[index] == left.key[0]
            if index < width + len(right.carried):
                return (
                    join.kind in ("INNER", "RIGHT") and right.carried[index - width] == right.key[0]
                )
            return synthetic(join) and index == len(stage.shape.names) - 2
    return False
