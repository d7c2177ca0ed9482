"""An upgrade report as a person reads it: verdict, changes, guarantees, point of the switch."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_UNDER = (0, 0, 0, 2)


def render_upgrade(report: dict[str, Any], *, dry: bool = False) -> RenderableType:
    """Return the whole report; ``dry`` when nothing was changed yet."""
    parts: list[RenderableType] = [_verdict(report, dry=dry)]
    if report.get("traits"):
        parts.append(_section("query is", Text(", ".join(report["traits"]))))
    if report.get("changes"):
        parts.append(_section("changes", _changes(report["changes"])))
    if report.get("inherited"):
        parts.append(_section("inherited", Text("\n".join(report["inherited"]))))
    if report.get("guarantees") and report.get("accepted"):
        parts.append(_section("guarantees", _guarantees(report["guarantees"])))
    if report.get("switch"):
        parts.append(_section("switched", _switch(report["switch"])))
    return Group(*parts)


def _verdict(report: dict[str, Any], *, dry: bool) -> Text:
    accepted = report.get("accepted")
    done = "would be accepted" if dry else "accepted"
    word = done if accepted else "would be refused" if dry else "refused"
    query = f" of {report['queryId']}" if report.get("queryId") else ""
    line = Text(f"Upgrade{query} ")
    line.append(word, style="bold green" if accepted else "bold red")
    line.append(f": {', '.join(report.get('classes', ()))}")
    return line


def _section(name: str, content: RenderableType) -> Padding:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", width=10, no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(name, content)
    return Padding(table, _UNDER, expand=False)


def _changes(changes: list[dict[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for change in sorted(changes, key=lambda change: bool(change["allowed"])):
        mark = Text("ok", style="green") if change["allowed"] else Text("no", style="bold red")
        said = Text()
        if change["clause"]:
            said.append(f"{change['clause']}: ", style="bold")
        said.append(change["text"])
        said.append(f" ({change['kind']})", style="dim")
        table.add_row(mark, said)
    return table


def _guarantees(guarantees: list[dict[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for guarantee in guarantees:
        holds = Text("yes", style="green") if guarantee["holds"] else Text("no", style="yellow")
        table.add_row(Text(guarantee["name"]), holds, Text(guarantee.get("note", "")))
    return table


def _switch(switch: dict[str, Any]) -> Text:
    batch, gap = switch.get("batchId"), switch.get("gapMs")
    first = [] if batch is None else [f"after batch {batch}"]
    if gap is not None:
        first.append(f"gap {gap} ms")
    lines = [", ".join(first)] if first else []
    for topic, offsets in switch.get("offsets", {}).items():
        places = ", ".join(f"{partition} at {offset}" for partition, offset in offsets.items())
        lines.append(f"{topic}: partition {places}")
    return Text("\n".join(lines))
