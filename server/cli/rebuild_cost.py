"""The texts of EXPLAIN about the cost of a rebuild: its records, its time, its room.

It also shows the rows that differ between the old and the new plan.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from server.cli.grid import clean

_ORIGINS: Final = {
    "measured": "the speed of the running query's largest batch",
    "assumed": "assumed: the running query has read no large batch here",
    "limit": "ksql.upgrade.rebuild.max.records.per.second",
}


def rebuild_text(reads: list[dict[str, Any]], estimate: dict[str, Any] | None) -> Text:
    """Return what a rebuild would read of each source, and what it would take."""
    lines = [line for source in reads for line in _source(source)]
    return Text("\n".join([*lines, *(_estimate(estimate) if estimate else ())]))


def _source(source: dict[str, Any]) -> list[str]:
    """Return what is read of a source, and what its topic has not any more."""
    most = "at most " if source.get("compacted") else ""
    line = f"reads {most}{source['records']:,} records of {source['source']}"
    size = source.get("bytes")
    if size is None:
        lines = [f"{line} (topic {source['topic']})"]
    else:
        about = f"about {bytes_text(size)} by {source['sampled']} sampled records"
        lines = [f"{line} (topic {source['topic']}), {about}"]
    gone = []
    if source.get("begins") is not None:
        gone.append(f"begins at {_instant(source['begins'])}")
    if source["lost"]:
        gone.append(f"has lost {source['lost']:,} records at its beginning")
    if source.get("compacted"):
        gone.append("is compacted: earlier records of a key may be gone")
    if gone:
        lines.append(f"  topic {source['topic']} {'; '.join(gone)}")
    return lines


def _estimate(estimate: dict[str, Any]) -> list[str]:
    lines = []
    if estimate.get("resultsSince") is not None:
        since = _instant(estimate["resultsSince"])
        lines.append(f"the running query has results since {since}")
    rate = f"{estimate['rate']:,.0f} records/s ({_ORIGINS[estimate['rateFrom']]})"
    lines.append(f"takes about {duration_text(estimate['seconds'])} at {rate}")
    state, free = estimate.get("stateBytes"), estimate.get("freeBytes")
    if state:
        room = "" if free is None else f"; {bytes_text(free)} are free"
        lines.append(f"needs about {bytes_text(state)} for a second state{room}")
    return lines


def bytes_text(size: float) -> str:
    """Return a number of bytes in the largest unit of which there is one."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"


def duration_text(seconds: float) -> str:
    """Return a duration in seconds, or in minutes if it is longer than two of them."""
    return f"{seconds:,.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} minutes"


def _instant(millis: int) -> str:
    return dt.datetime.fromtimestamp(millis / 1000, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def sample_part(sample: dict[str, Any]) -> RenderableType:
    """Return how the results of both plans differ over the last records."""
    part, cut = ("the last ", "") if sample["complete"] else ("", ", no more in the time or room")
    line = (
        f"over {part}{sample['records']:,} records{cut}: {sample['oldRows']:,} results before, "
        f"{sample['newRows']:,} after; {sample['different']:,} differ"
    )
    parts: list[RenderableType] = [Text(line)]
    if sample["trouble"]:
        parts.append(Text(f"ended by: {clean(sample['trouble'])}", style="yellow"))
    if sample["rows"]:
        parts.append(_differing_rows(sample["rows"]))
        if sample["different"] > len(sample["rows"]):
            parts.append(Text(f"and {sample['different'] - len(sample['rows']):,} more"))
    return Group(*parts)


def _differing_rows(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for header in ("Key", "Old row", "New row"):
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_row_text(row.get(part))) for part in ("key", "old", "new")))
    return table


def _row_text(row: dict[str, Any] | None) -> str:
    """Return a row's columns in one line; a dash where there is no row."""
    if row is None:
        return "-"
    return clean(", ".join(f"{n}={'null' if v is None else v}" for n, v in row.items()))
