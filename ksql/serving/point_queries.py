"""Pull queries by key, planned once for all keys.

Clients ask for one row after another with texts that differ in the key alone. A text that ends in
``= <literal>;`` is taken apart there. The part before the literal is read the same way whatever key
follows it. So the plan of the first such query serves later ones, as long as nothing that it was
made of has changed.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ksql.core import Settings
from ksql.core.types import BIGINT, INTEGER, STRING, Column
from ksql.formats import FORMATS
from ksql.serving.ordering import SETTING
from ksql.serving.pull import BoundPull, PullQuery, noted
from ksql.serving.result_pipeline import ResultPipeline, compile_answer
from ksql.sql.binder import bound as b
from ksql.views import ByKey, Chunks, TableScan, Windows, row_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.functions import Functions
    from ksql.sql.syntax import RawStatement
    from ksql.views.stores import Rows

_SPLIT: Final = re.compile(r"(.*=\s*)('(?:[^']|'')*'|0|[1-9][0-9]{0,8})\s*;\s*", re.DOTALL)
_LONGEST: Final = 4_000
_MOST: Final = 256


class PointQuery(NamedTuple):
    """A text that may be a look-up: the part before its last literal, and that literal."""

    head: str
    literal: str
    value: str | int


def point_query_of(text: str) -> PointQuery | None:
    """Take a text apart; None for one that is no look-up. Variables may be anywhere in it."""
    match = _SPLIT.fullmatch(text) if len(text) < _LONGEST and "${" not in text else None
    if match is None:
        return None
    head, literal = match.groups()
    is_text = literal.startswith("'")
    return PointQuery(head, literal, literal[1:-1].replace("''", "'") if is_text else int(literal))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedQuery:
    """A planned query for the row, or the windows, of one key; ``begin`` is where its text does.

    ``plain``: at most one row is found, and its columns are those of the table: nothing is called.
    """

    begin: int
    settings: Settings
    table: TableScan
    place: int
    windows: Windows
    answer: ResultPipeline
    columns: tuple[Column, ...]
    plain: bool

    def query(self, value: str | int, stores: Mapping[int, Rows], query_id: str) -> PullQuery:
        """Return the query for that key."""
        table, column = replace(self.table, stores=stores), self.place

        def rows(closed: Callable[[], bool]) -> Chunks:
            for chunk in table.rows(ByKey([(value,)], self.windows), closed):
                yield [row for row in chunk if row[column] == value]

        return PullQuery(
            query_id=query_id,
            columns=self.columns,
            answer=self.answer,
            rows=rows,
            notes=lambda: noted([table.note(ByKey([(value,)], self.windows), self.windows)]),
            quick=self.table.source.window is None,
            brief=self.table.source.window is None,
        )


def prepare_query(
    point: PointQuery, raw: RawStatement, bound: BoundPull, functions: Functions, settings: Settings
) -> PreparedQuery | None:
    """Return the plan for all keys of a bound query; None if its condition is anything else."""
    *_, literal, _end = raw.words
    if (literal.span.start, literal.text) != (len(point.head), point.literal):
        return None  # the regular expression has misread it
    access, meaning, source = bound.access, bound.meaning, bound.stored[0]
    if not isinstance(access, ByKey) or meaning.grouping is not None or bound.relation.joins:
        return None
    formats = (source.key_format.name, source.value_format.name)
    if len(source.schema.key) != 1 or any(FORMATS[name].kind for name in formats):
        return None  # what a registry has may change
    key = source.schema.key[0]
    types = (STRING,) if isinstance(point.value, str) else (INTEGER, BIGINT)
    match meaning.where:
        case b.Compare("=", b.Column(name), b.Const(value)):
            if name != key.name or key.type not in types or value != point.value:
                return None
        case _:
            return None
    names = list(row_columns(source))
    return PreparedQuery(
        begin=raw.span.start,
        settings=settings,
        table=TableScan.of(source, {}, None, bound.scattered),
        place=names.index(key.name),
        windows=access.windows,
        answer=compile_answer(
            replace(meaning, where=None),
            names,
            functions,
            dict(settings.functions()),
            settings.number(SETTING),
        ),
        columns=bound.columns,
        plain=source.window is None
        and all(isinstance(output.expr, b.Column) for output in meaning.outputs),
    )


class PointQueryCache:
    """The plans used last; for any number of threads.

    ``made_of`` are the things whose change ends a plan: it is found with the very same ones only.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: OrderedDict[object, tuple[tuple[Any, ...], PreparedQuery]] = OrderedDict()
        self._lock = threading.Lock()

    def find(
        self, point: PointQuery, properties: Mapping[str, str], made_of: tuple[Any, ...]
    ) -> PreparedQuery | None:
        """Return the plan of such a query."""
        key = _key(point, properties)
        with self._lock:
            entry = self._kept.get(key)
            if entry is None:
                return None
            if any(old is not new for old, new in zip(entry[0], made_of, strict=True)):
                del self._kept[key]
                return None
            self._kept.move_to_end(key)
            return entry[1]

    def keep(
        self,
        point: PointQuery,
        properties: Mapping[str, str],
        made_of: tuple[Any, ...],
        lookup: PreparedQuery,
    ) -> None:
        """Keep a plan; the one that was not used for the longest time makes room."""
        key = _key(point, properties)
        with self._lock:
            self._kept[key] = made_of, lookup
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


def _key(point: PointQuery, properties: Mapping[str, str]) -> object:
    return point.head, type(point.value), frozenset(properties.items())
