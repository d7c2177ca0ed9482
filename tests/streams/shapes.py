"""The shapes of queries that are compared: what a case of each says, and its statements."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Given = dict[str, Any]
"""A case without its records: the shape, the kinds of its joins, its times in milliseconds."""
Draw = Callable[[random.Random], Given]
Query = Callable[[Given, str], str]

_COLUMNS = {"l": "V BIGINT, F {}", "r": "W BIGINT, G STRING", "s": "X BIGINT"}
_LENGTHS = (1, 7, 10, 1000, 60_000, 3_600_000)
_DAY_MS = 86_400_000
TYPES = {
    "KAFKA": ("STRING", "INT", "BIGINT", "DOUBLE"),
    "JSON": ("STRING", "INT", "BIGINT", "DOUBLE", "DECIMAL(4, 2)", "STRUCT<A INT, B STRING>"),
}
"""The types that the keys of a format can have."""


@dataclass(frozen=True)
class Join:
    """The source that comes to those before it."""

    other: str
    on: str
    within: bool = False


@dataclass(frozen=True)
class Shape:
    """What is drawn for a case; l and what is joined to it; the query over that.

    Records of the topics ``anywhere`` may lie in another partition than their key's. Those of
    others may not: a query that goes by no time finds the rows of a key in whatever partition.
    """

    draws: tuple[Draw, ...]
    streams: str
    tables: str
    joins: tuple[Join, ...]
    query: Query
    anywhere: str = ""

    def draw(self, chance: random.Random) -> Given:
        """The kinds and times of a case."""
        return {name: value for draw in self.draws for name, value in draw(chance).items()}


def statements(given: Given, tag: str = "") -> str:
    """The case in SQL; the result is OUT. Topics are named after their sources, then the tag."""
    shape = ALL[given["shape"]]
    partitions, formats = given.get("partitions", 1), given.get("formats", {})
    lines = []
    for topic in shape.streams + shape.tables:
        kind, key = ("STREAM", "KEY") if topic in shape.streams else ("TABLE", "PRIMARY KEY")
        columns = f"K STRING {key}, {_COLUMNS[topic].format(group_type(given))}"
        key_format = f", KEY_FORMAT='{formats[topic]}'" if topic in formats else ""
        lines.append(
            f"CREATE {kind} {topic} ({columns}) "
            f"WITH (KAFKA_TOPIC='{topic}{tag}', PARTITIONS={partitions}{key_format});"
        )
    read = "l"
    for kind, join in zip(given.get("kind", "").split(), shape.joins, strict=True):
        within = f" {_within_clause(given)}" if join.within else ""
        read += f" {kind} JOIN {join.other}{within} ON {join.on}"
    query = shape.query(given, read).replace("OUT AS", f"OUT WITH (KAFKA_TOPIC='OUT{tag}') AS")
    return "\n".join([*lines, query])


def group_type(given: Given) -> str:
    """The type of F."""
    return str(given.get("type", "STRING")) if given.get("by") == "F" else "STRING"


def unit_ms(given: Given) -> int:
    """The length of time that records of the case lie apart by."""
    lengths = [given[name] for name in ("before", "after", "size", "gap") if name in given]
    return max(lengths, default=10)


# --- joins


def _kinds(*kinds: str) -> Draw:
    return lambda chance: {"kind": chance.choice(kinds)}


def _within(chance: random.Random) -> Given:
    after = chance.choice(_LENGTHS)
    before = chance.choice((after, after, 0, after // 2, 3 * after))
    grace = chance.choice((0, after // 2, 3 * after, None, None, 2 * _DAY_MS))
    return {"before": before, "after": after, "join-grace": grace}


def _within_clause(given: Given) -> str:
    within = f"WITHIN ({_ms(given['before'])}, {_ms(given['after'])})"
    grace = given["join-grace"]
    return within if grace is None else f"{within} GRACE PERIOD {_ms(grace)}"


def _rows(result: str, columns: str, of_l: str = "l.K", of_r: str = "r.K") -> Query:
    def query(given: Given, read: str) -> str:
        kinds = given["kind"].split()
        key = "ROWKEY" if "FULL" in kinds else of_l
        if kinds[-1] == "RIGHT":
            key = of_r if len(kinds) == 1 else "s.K"
        return f"CREATE {result} OUT AS SELECT {key} AS K, {columns} FROM {read};"

    return query


# --- aggregates

_FOLDS = "COUNT(*) AS C, SUM(V) AS S, COLLECT_LIST(V) AS L"


def _groups(given: Given, read: str) -> str:
    del given
    return f"CREATE TABLE OUT AS SELECT F, {_FOLDS} FROM {read} GROUP BY F;"


def _moved(given: Given, read: str) -> str:
    del given
    return f"CREATE STREAM OUT AS SELECT F, V FROM {read} PARTITION BY F;"


def _kept(chance: random.Random, size: int) -> Given:
    grace = chance.choice((0, size // 2, size, 5 * size))
    retention = size + grace + chance.choice((0, size, _DAY_MS))
    return {"grace": grace, "retention": retention, "final": chance.random() < 0.5}


def _windows(chance: random.Random) -> Given:
    size = chance.choice(_LENGTHS)
    advance = chance.choice((size, size, max(1, size // 2), max(1, size // 3)))
    return {"size": size, "advance": advance, **_kept(chance, size)}


def _sessions(chance: random.Random) -> Given:
    gap = chance.choice(_LENGTHS)
    return {"gap": gap, **_kept(chance, gap)}


def _windowed(given: Given, read: str) -> str:
    kept = f"RETENTION {_ms(given['retention'])}, GRACE PERIOD {_ms(given['grace'])}"
    if "gap" in given:
        window = f"SESSION ({_ms(given['gap'])}, {kept})"
    elif given["size"] == given["advance"]:
        window = f"TUMBLING (SIZE {_ms(given['size'])}, {kept})"
    else:
        hop = f"ADVANCE BY {_ms(given['advance'])}"
        window = f"HOPPING (SIZE {_ms(given['size'])}, {hop}, {kept})"
    emit = "FINAL" if given["final"] else "CHANGES"
    by = given.get("by", "l.K")
    return (
        f"CREATE TABLE OUT AS SELECT {by}, {_FOLDS} FROM {read} "
        f"WINDOW {window} GROUP BY {by} EMIT {emit};"
    )


def _ms(length: int) -> str:
    return f"{length} MILLISECONDS"


# --- over several partitions


def _fixed(**given: Any) -> Draw:
    return lambda _: given


def _by_f(chance: random.Random) -> Given:
    """Groups by F, which has a type that the format of the keys can hold."""
    format_ = chance.choice(tuple(TYPES))
    return {"by": "F", "type": chance.choice(TYPES[format_]), "formats": {"l": format_}}


# --- all of them

_KINDS = ("INNER", "LEFT", "RIGHT", "FULL")
_ANY = _kinds(*_KINDS)
_OF_STREAM = _kinds(*_KINDS[:2])
_TWO = _kinds(*(f"{one} {two}" for one in _KINDS[:2] for two in _KINDS))
_TWO_OF_STREAM = _kinds(*(f"{one} {two}" for one in _KINDS[:2] for two in _KINDS[:2]))
_R, _S = Join("r", "l.K = r.K"), Join("s", "l.K = s.K")
_NEAR_R, _NEAR_S = Join("r", "l.K = r.K", within=True), Join("s", "l.K = s.K", within=True)
_FOREIGN = Join("r", "l.F = r.K")
_STREAM, _STREAM_OF_3 = _rows("STREAM", "V, F, W"), _rows("STREAM", "V, F, W, X")
_TABLE, _TABLE_OF_3 = _rows("TABLE", "V, F, W"), _rows("TABLE", "V, F, W, X")

SHAPES: dict[str, Shape] = {
    "stream-stream": Shape((_ANY, _within), "lr", "", (_NEAR_R,), _STREAM, "lr"),
    "stream-chain": Shape((_TWO, _within), "lrs", "", (_NEAR_R, _NEAR_S), _STREAM_OF_3, "lrs"),
    "streams-table": Shape(
        (_TWO_OF_STREAM, _within), "lr", "s", (_NEAR_R, _S), _STREAM_OF_3, "lrs"
    ),
    "stream-table": Shape((_OF_STREAM,), "l", "r", (_R,), _STREAM),
    "stream-tables": Shape((_TWO_OF_STREAM,), "l", "rs", (_R, _S), _STREAM_OF_3),
    "table-table": Shape((_ANY,), "", "lr", (_R,), _TABLE),
    "table-chain": Shape((_TWO,), "", "lrs", (_R, _S), _TABLE_OF_3),
    "foreign-key": Shape((_OF_STREAM,), "", "lr", (_FOREIGN,), _TABLE),
    "foreign-chain": Shape((_TWO,), "", "lrs", (_FOREIGN, _S), _TABLE_OF_3),
    "table-aggregate": Shape((), "", "l", (), _groups),
    "join-aggregate": Shape((_ANY,), "", "lr", (_R,), _groups),
    "windows": Shape((_windows,), "l", "", (), _windowed, "l"),
    "sessions": Shape((_sessions,), "l", "", (), _windowed, "l"),
    "join-windows": Shape((_OF_STREAM, _within, _windows), "lr", "", (_NEAR_R,), _windowed, "lr"),
    "join-sessions": Shape((_OF_STREAM, _within, _sessions), "lr", "", (_NEAR_R,), _windowed, "lr"),
}

_MOVED_L = Join("r", "l.F = r.K", within=True)
_MOVED_R = Join("r", "l.K = r.G", within=True)
_BOTH = Join("r", "l.F = r.G", within=True)
_KEYLESS = _fixed(columns=["V", "W"])
_BY_F, _BY_W = _fixed(by="F", type="STRING"), _fixed(by="W", type="BIGINT")
_PAIRS = _fixed(by="F, V", type="pairs", formats={"l": "JSON"})
_TWO_FORMATS = _fixed(formats={"l": "KAFKA", "r": "JSON"})

MOVED: dict[str, Shape] = {
    "moved": Shape((_by_f, _fixed(columns=["V"])), "l", "", (), _moved, "l"),
    "moved-groups": Shape((_by_f,), "l", "", (), _groups, "l"),
    "moved-windows": Shape((_windows, _by_f), "l", "", (), _windowed, "l"),
    "moved-pairs": Shape((_windows, _PAIRS), "l", "", (), _windowed, "l"),
    "moved-sessions": Shape((_sessions, _by_f), "l", "", (), _windowed, "l"),
    "moved-left": Shape(
        (_ANY, _within, _KEYLESS), "lr", "", (_MOVED_L,), _rows("STREAM", "V, W", "l.F"), "lr"
    ),
    "moved-right": Shape(
        (_ANY, _within, _fixed(columns=["V", "F", "W"])),
        "lr",
        "",
        (_MOVED_R,),
        _rows("STREAM", "V, F, W", "l.K", "r.G"),
        "lr",
    ),
    "moved-both": Shape(
        (_ANY, _within, _KEYLESS), "lr", "", (_BOTH,), _rows("STREAM", "V, W", "l.F", "r.G"), "lr"
    ),
    "moved-chain": Shape(
        (_TWO, _within, _fixed(columns=["V", "W", "X"])),
        "lrs",
        "",
        (_NEAR_R, Join("s", "l.F = s.K", within=True)),
        _rows("STREAM", "V, W, X", "l.F"),
        "lrs",
    ),
    "formats": Shape((_ANY, _within, _TWO_FORMATS), "lr", "", (_NEAR_R,), _STREAM, "lr"),
    "moved-lookup": Shape(
        (_OF_STREAM, _KEYLESS),
        "l",
        "r",
        (Join("r", "l.F = r.K"),),
        _rows("STREAM", "V, W", "l.F"),
        "l",
    ),
    "moved-join-windows": Shape(
        (_OF_STREAM, _within, _windows, _BY_F), "lr", "", (_NEAR_R,), _windowed, "lr"
    ),
    "moved-lookup-windows": Shape(
        (_OF_STREAM, _windows, _BY_W), "l", "r", (Join("r", "l.F = r.K"),), _windowed, "lr"
    ),
}
"""Those that give rows another key, over several partitions only."""

ALL = SHAPES | MOVED
