"""Long descriptions in the terminal: a source, a query, an upgrade.

An upgrade report shows verdict, changes, guarantees and the point of the switch.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from server.cli.client import JsonObject
from server.cli.grid import Grid, clean, pairs, type_text
from server.cli.rebuild_cost import bytes_text, rebuild_text, sample_part

_UNDER = (0, 0, 0, 2)


def render_upgrade(report: dict[str, Any], *, dry: bool = False) -> RenderableType:
    """Return the whole report; ``dry`` when nothing was changed yet."""
    parts: list[RenderableType] = [_verdict(report, dry=dry)]
    if report.get("traits"):
        parts.append(_part("query is", Text(", ".join(report["traits"]))))
    if report.get("changes"):
        parts.append(_part("changes", _changes(report["changes"])))
    if report.get("inherited"):
        parts.append(_part("inherited", Text("\n".join(report["inherited"]))))
    if report.get("guarantees") and report.get("accepted"):
        parts.append(_part("guarantees", _guarantees(report["guarantees"])))
    if report.get("switch"):
        parts.append(_part("switched", _switch(report["switch"])))
    if report.get("modes"):
        parts.append(_part("modes", _modes(report["modes"])))
    if report.get("reads"):
        parts.append(_part("rebuild", rebuild_text(report["reads"], report.get("estimate"))))
    if report.get("sample"):
        parts.append(_part("sample", sample_part(report["sample"])))
    return Group(*parts)


def _modes(modes: list[dict[str, Any]]) -> Text:
    """Return which REPLACE_MODE is possible, and why another one is not."""
    lines = []
    for mode in modes:
        reasons = "; ".join(mode["reasons"])
        word = "possible" if mode["possible"] else f"not possible: {reasons}"
        lines.append(f"{mode['mode']} {word}")
    return Text("\n".join(lines))


def _verdict(report: dict[str, Any], *, dry: bool) -> Text:
    accepted = report.get("accepted")
    done = "would be accepted" if dry else "accepted"
    word = done if accepted else "would be refused" if dry else "refused"
    query = f" of {report['queryId']}" if report.get("queryId") else ""
    line = Text(f"Upgrade{query} ")
    line.append(word, style="bold green" if accepted else "bold red")
    line.append(f": {', '.join(report.get('classes', ()))}")
    return line


def _part(name: str, content: RenderableType) -> Padding:
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


def describe_source(source: JsonObject) -> RenderableType:
    """Render DESCRIBE, and DESCRIBE EXTENDED."""
    head = [("Name", source["name"])]
    if source.get("extended"):
        head += _details(source)
    parts: list[RenderableType] = [pairs(head), Text(), _fields(source["fields"], source)]
    if not source.get("extended"):
        parts += [Text(), Text(f"For statistics: DESCRIBE {source['name']} EXTENDED;", style="dim")]
        return Group(*parts)
    parts += _queries("Queries that read from it", source["readQueries"])
    parts += _queries("Queries that write to it", source["writeQueries"])
    if source.get("sourceConstraints"):
        parts += _section("Made from it", Text(", ".join(source["sourceConstraints"])))
    parts += _section("Statistics", _statistics(source))
    for summary in source.get("queryOffsetSummaries") or ():
        parts += _offsets(summary)
    return Group(*parts)


def _details(source: JsonObject) -> list[tuple[str, str]]:
    details = [
        ("Type", source["type"]),
        ("Window", source.get("windowType")),
        ("Timestamp field", source.get("timestamp") or "the record's own"),
        ("Key format", source["keyFormat"]),
        ("Value format", source["valueFormat"]),
        ("Kafka topic", f"{source['topic']}{_size(source)}"),
        ("Statement", source.get("statement")),
    ]
    return [(name, clean(value)) for name, value in details if value]


def _size(source: JsonObject) -> str:
    if not source.get("partitions"):
        return ""
    return f" (partitions: {source['partitions']}, replication: {source['replication']})"


def columns_of(source: JsonObject) -> Grid:
    """Return the columns of a source."""
    return _grid(source["fields"], source)


def _fields(fields: list[JsonObject], source: JsonObject | None = None) -> RenderableType:
    if not fields:
        return Text("No columns.", style="dim")
    return _grid(fields, source or {})


def _grid(fields: list[JsonObject], source: JsonObject) -> Grid:
    return Grid(["Field", "Type"], [[f["name"], _field_type(f, source)] for f in fields])


def _field_type(field: JsonObject, source: JsonObject) -> str:
    text = type_text(field["schema"])
    match field.get("type"):
        case "KEY":
            mark = "primary key" if source.get("type") == "TABLE" else "key"
            window = source.get("windowType")
            return f"{text} ({mark})" + (f" (Window type: {window})" if window else "")
        case "HEADER":
            key = field.get("headerKey")
            return f"{text} (header('{key}'))" if key else f"{text} (headers)"
        case _:
            return text


def _section(title: str, content: RenderableType) -> list[RenderableType]:
    return [Text(), Text(title, style="bold"), content]


def _queries(title: str, queries: list[JsonObject]) -> list[RenderableType]:
    if not queries:
        return []
    rows = [
        (f"{q['id']} ({q['state']})", clean(" ".join(q["queryString"].split()))) for q in queries
    ]
    return _section(title, pairs([(f"  {name}", text) for name, text in rows]))


def _statistics(source: JsonObject) -> RenderableType:
    lines = [source.get("statistics"), source.get("errorStats")]
    cluster = [*(source.get("clusterStatistics") or ()), *(source.get("clusterErrorStats") or ())]
    if not source.get("statistics") or len({item["host"] for item in cluster}) > 1:
        lines += [f"{item['host']}  {item['name']}: {_number(item['value'])}" for item in cluster]
    shown = [f"  {clean(line)}" for text in lines if text for line in text.split("\n")]
    return Text("\n".join(shown) or "  none yet")


def _number(value: object) -> str:
    text = str(value)
    return text.removesuffix(".0")


def _offsets(summary: JsonObject) -> list[RenderableType]:
    rows = [
        [
            topic["kafkaTopic"],
            *(
                str(offset[key])
                for key in ("partition", "logStartOffset", "logEndOffset", "consumerOffset")
            ),
            str(offset["logEndOffset"] - offset["consumerOffset"]),
        ]
        for topic in summary["topicSummaries"]
        for offset in topic["offsets"]
    ]
    headers = ["Kafka topic", "Partition", "Start", "End", "Read up to", "Lag"]
    return _section(f"Consumer group {summary['groupId']}", Grid(headers, rows)) if rows else []


def describe_query(query: JsonObject) -> RenderableType:
    """Render EXPLAIN, of a text or of a running query."""
    hosts = query.get("ksqlHostQueryStatus") or {}
    head = [
        ("ID", query.get("id")),
        ("Query type", query.get("queryType")),
        ("State", query.get("state")),
        ("SQL", query.get("statementText")),
        ("Reads", ", ".join(query.get("sources") or ())),
        ("Writes", ", ".join(query.get("sinks") or ())),
        ("Window", query.get("windowType")),
        ("Consumer group", query.get("consumerGroupId")),
        ("Hosts", ", ".join(f"{host}: {state}" for host, state in hosts.items())),
    ]
    parts: list[RenderableType] = [pairs([(n, clean(str(v))) for n, v in head if v])]
    if query.get("upgrade"):
        dry = query["upgrade"].get("switch") is None
        parts += [Text(), render_upgrade(query["upgrade"], dry=dry)]
    if query.get("fields"):
        parts += [Text(), _fields(query["fields"])]
    texts = (("Execution plan", "executionPlan"), ("Topology", "topology"))
    for title, key in texts:
        if query.get(key):
            parts += _section(title, Text(clean(query[key].rstrip("\n"))))
    overridden = query.get("overriddenProperties") or {}
    if overridden:
        parts += _section(
            "Overridden properties", pairs([(f"  {k}", v) for k, v in overridden.items()])
        )
    parts += _errors(query.get("queryErrors") or ())
    parts += _tasks(query.get("tasksMetadata") or ())
    return Group(*parts)


def describe_connector(entity: JsonObject) -> RenderableType:
    """Render DESCRIBE CONNECTOR: its state, its tasks, the sources over its topics."""
    status, connector = entity["status"], entity["status"]["connector"]
    head = [
        ("Name", status["name"]),
        ("Class", entity["connectorClass"]),
        ("Type", status["type"]),
        ("State", connector["state"]),
        ("WorkerId", connector["worker_id"]),
        ("Trace", connector.get("trace") or ""),
    ]
    parts: list[RenderableType] = [pairs([(name, clean(text)) for name, text in head if text])]
    if status["tasks"]:
        tasks = [[str(t["id"]), t["state"], clean(t.get("trace") or "")] for t in status["tasks"]]
        parts += [Text(), Grid(["Task ID", "State", "Error Trace"], tasks)]
    if entity["sources"]:
        rows = [[clean(s["name"]), clean(s["topic"]), s["type"]] for s in entity["sources"]]
        parts += [Text(), Grid(["KSQL Source Name", "Kafka Topic", "Type"], rows)]
    if entity["topics"]:
        topics = [[clean(topic)] for topic in entity["topics"]]
        parts += [Text(), Grid(["Related Topics"], topics)]
    return Group(*parts)


def describe_upgrade(upgrade: JsonObject) -> RenderableType:
    """Render DESCRIBE UPGRADE."""
    head = [
        ("ID", upgrade["id"]),
        ("Query", f"{upgrade['queryId']}, which writes {upgrade['source']}"),
        ("Mode", upgrade["mode"]),
        ("Class", ", ".join(upgrade["classes"])),
        ("Status", upgrade_status(upgrade)),
        ("User", upgrade.get("user")),
        ("Begun", time_text(upgrade.get("begun"))),
        ("Finished", time_text(upgrade.get("finished"))),
        ("Outcome", upgrade["outcome"]),
        ("Note", _RESTORED if upgrade["restored"] else ""),
    ]
    if upgrade.get("progress"):
        head.append(("Progress", progress_text(upgrade["progress"])))
    parts: list[RenderableType] = [pairs([(name, clean(text)) for name, text in head if text])]
    texts = (("Former statement", "formerStatement"), ("Statement", "statement"))
    for title, key in texts:
        parts += _section(title, Text(clean(upgrade[key])))
    details = _upgrade_details(upgrade)
    return Group(*parts, Text(), *details) if details else Group(*parts)


_RESTORED = "taken from the command topic: the ledger was lost"


def _upgrade_details(upgrade: JsonObject) -> list[RenderableType]:
    details: list[RenderableType] = []
    if upgrade["traits"]:
        details.append(_part("query is", Text(", ".join(upgrade["traits"]))))
    if upgrade["changes"]:
        details.append(_part("changes", _changes(upgrade["changes"])))
    if upgrade["inherited"]:
        details.append(_part("inherited", Text("\n".join(upgrade["inherited"]))))
    if upgrade["guarantees"]:
        details.append(_part("guarantees", _guarantees(upgrade["guarantees"])))
    if upgrade["offsets"] or upgrade.get("gapMs") is not None:
        details.append(_part("switched", _switch(upgrade)))
    if difference := upgrade.get("difference"):
        counts = ", ".join(f"{count} {name}" for name, count in difference.items())
        details.append(_part("rows", Text(counts)))
    return details


def upgrade_status(upgrade: JsonObject) -> str:
    """Return the status of an upgrade; of a rebuild that is under way, also how far it is."""
    progress = upgrade.get("progress")
    return f"{upgrade['status']} {progress['percent']} %" if progress else str(upgrade["status"])


def progress_text(progress: JsonObject) -> str:
    """Return how far a rebuild has come, in one line."""
    there = progress["recordsRead"] + progress["recordsLeft"]
    size = progress.get("bytesRead")
    read = "" if size is None else f", {bytes_text(size)}"
    said = [
        f"{progress['percent']} % ({progress['recordsRead']:,} of {there:,} records{read})",
        f"{progress['recordsPerSecond']:,.0f} records/s",
        f"state {progress['stateBytes']:,} bytes",
    ]
    if progress.get("lagSeconds") is not None:
        said.append(f"{progress['lagSeconds']:,.0f} s behind")
        said.append(f"there at {time_text(progress['estimatedEnd'])}")
    if progress["trouble"]:
        said.append(f"trouble: {progress['trouble']}")
    return clean(", ".join(said))


def time_text(millis: int | None) -> str:
    """Return a time in UTC; empty if it is not known."""
    return "" if millis is None else _time(millis)


def _errors(errors: Iterable[JsonObject]) -> list[RenderableType]:
    rows = [(f"  {_time(e['timestamp'])} {e['type']}", clean(e["errorMessage"])) for e in errors]
    return _section("Errors", pairs(rows)) if rows else []


def _time(millis: int) -> str:
    return dt.datetime.fromtimestamp(millis / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


def _tasks(tasks: Iterable[JsonObject]) -> list[RenderableType]:
    rows = []
    for task in tasks:
        for offset in task["topicOffsets"]:
            partition: dict[str, Any] = offset["topicPartitionEntity"]
            rows.append(
                [
                    task["taskId"],
                    partition["topic"],
                    *map(
                        str,
                        (partition["partition"], offset["endOffset"], offset["committedOffset"]),
                    ),
                ]
            )
    headers = ["Task", "Kafka topic", "Partition", "End", "Committed"]
    return _section("Tasks", Grid(headers, rows)) if rows else []
