"""One renderer per ``@type``: an entity in, something the terminal can draw out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from server.cli.client import JsonObject
from server.cli.describe import (
    columns_of,
    describe_connector,
    describe_query,
    describe_source,
    describe_upgrade,
    progress_text,
    render_upgrade,
    time_text,
    upgrade_status,
)
from server.cli.grid import Grid, clean, pairs, type_text

Renderer = Callable[[JsonObject], RenderableType]


def render(entity: JsonObject) -> RenderableType:
    """Show an entity, as JSON if its type is unknown."""
    renderer = RENDERERS.get(entity.get("@type", ""))
    shown = as_json(entity) if renderer is None else renderer(entity)
    warnings = [
        Text(f"WARNING: {clean(warning['message'])}", style="yellow")
        for warning in entity.get("warnings") or ()
    ]
    return Group(*warnings, shown) if warnings else shown


def grid_of(entity: JsonObject) -> Grid | None:
    """Return the entity as headers and rows, if it is a list of things or the columns of one."""
    kind = entity.get("@type", "")
    renderer = _LISTINGS.get(kind) or RENDERERS.get(kind)
    if isinstance(renderer, Listing):
        return renderer.grid(entity)
    if kind == "sourceDescription":
        return columns_of(entity["sourceDescription"])
    shown = None if renderer is None else renderer(entity)
    return shown if isinstance(shown, Grid) else None


def as_json(value: object) -> Text:
    """Return the server's own JSON, indented."""
    return Text(json.dumps(value, indent=2, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Listing:
    """Draws a list of objects: one row each, or a word when there is none."""

    key: str
    nothing: str
    columns: Sequence[tuple[str, Callable[[Any], object]]]

    def __call__(self, entity: JsonObject) -> RenderableType:
        return self.grid(entity) if entity[self.key] else Text(self.nothing, style="dim")

    def grid(self, entity: JsonObject) -> Grid:
        """Return the list as headers and rows, even if there are none."""
        rows = [[clean(str(of(item))) for _, of in self.columns] for item in entity[self.key]]
        return Grid([header for header, _ in self.columns], rows)


def _get(name: str) -> Callable[[Any], object]:
    return lambda item: "" if item.get(name) is None else item[name]


def _message(entity: JsonObject) -> RenderableType:
    return Text(clean(entity["message"]))


def _warning(entity: JsonObject) -> RenderableType:
    return Text(clean(entity["message"]), style="yellow")


def _status(entity: JsonObject) -> RenderableType:
    status = entity["commandStatus"]
    message = clean(status.get("message") or status["status"])
    if status["status"] in ("QUEUED", "PARSING", "EXECUTING"):
        message += f"\n{status['status']}: ask /status/{entity['commandId']} for its end"
    shown = Text(message, style="red" if status["status"] == "ERROR" else "")
    report = entity.get("upgrade")
    return Group(shown, render_upgrade(report)) if report else shown


def _dry_run(entity: JsonObject) -> RenderableType:
    shown, report = Text(clean(entity["message"])), entity.get("upgrade")
    return Group(shown, render_upgrade(report, dry=True)) if report else shown


def _properties(entity: JsonObject) -> RenderableType:
    overwritten = set(entity.get("overwrittenProperties") or ())
    default = set(entity.get("defaultProperties") or ())

    def origin(item: JsonObject) -> str:
        name = item["name"]
        return "SESSION" if name in overwritten else "" if name in default else item["level"]

    draw = Listing(
        "properties",
        "No properties.",
        (
            ("Property", _get("name")),
            ("Scope", _get("scope")),
            ("Set by", origin),
            ("Value", _get("value")),
        ),
    )
    return draw({"properties": sorted(entity["properties"], key=lambda item: str(item["name"]))})


def _sources(key: str, kind: str) -> Renderer:
    return Listing(
        key,
        f"No {kind}.",
        (
            (f"{kind[:-1].title()} Name", _get("name")),
            ("Kafka Topic", _get("topic")),
            ("Key Format", _get("keyFormat")),
            ("Value Format", _get("valueFormat")),
            ("Windowed", lambda item: str(bool(item["isWindowed"])).lower()),
        ),
    )


def _states(item: JsonObject) -> str:
    counts = item.get("statusCount") or {}
    return ",".join(f"{state}:{count}" for state, count in counts.items()) or item["state"]


_QUERIES = Listing(
    "queries",
    "No queries are running.",
    (
        ("Query ID", _get("id")),
        ("Type", _get("queryType")),
        ("Status", _states),
        ("Sink Name", lambda item: ",".join(item["sinks"])),
        ("Sink Topic", lambda item: ",".join(item["sinkKafkaTopics"])),
        ("Query", lambda item: " ".join(item["queryString"].split())),
    ),
)


def _queries(entity: JsonObject) -> RenderableType:
    drawn = _QUERIES(entity)
    if not entity["queries"]:
        return drawn
    lines = [
        Text(f"Warning: {item['id']}: {warning}")
        for item in entity["queries"]
        for warning in item.get("warnings") or ()
    ]
    hint = Text("For more of a query: EXPLAIN <Query ID>;", style="dim")
    return Group(drawn, *lines, Text(), hint)


_UPGRADES = Listing(
    "upgrades",
    "No upgrades.",
    (
        ("Upgrade ID", _get("id")),
        ("Query ID", _get("queryId")),
        ("Mode", _get("mode")),
        ("Class", lambda item: ", ".join(item["classes"])),
        ("Status", upgrade_status),
        ("User", lambda item: item.get("user") or "-"),
        ("Begun", lambda item: time_text(item.get("begun"))),
        ("Finished", lambda item: time_text(item.get("finished"))),
        ("Gap ms", _get("gapMs")),
    ),
)


def _upgrades(entity: JsonObject) -> RenderableType:
    """Draw the list, and a line about each rebuild that is under way."""
    lines = [
        Text(f"{item['id']}: {progress_text(item['progress'])}")
        for item in entity["upgrades"]
        if item.get("progress")
    ]
    drawn = _UPGRADES(entity)
    return Group(drawn, *lines) if lines else drawn


def _replicas(item: JsonObject) -> str:
    """Return one number if all partitions have as many replicas, else one each."""
    counts = sorted(set(item["replicaInfo"]))
    return str(counts[0]) if len(counts) == 1 else ", ".join(map(str, item["replicaInfo"]))


_TOPIC_COLUMNS: tuple[tuple[str, Callable[[Any], object]], ...] = (
    ("Kafka Topic", _get("name")),
    ("Partitions", lambda item: len(item["replicaInfo"])),
    ("Partition Replicas", _replicas),
)


def _function(entity: JsonObject) -> RenderableType:
    head = [("Name", entity["name"]), ("Type", entity["type"])]
    named = (("Author", "author"), ("Version", "version"), ("Overview", "description"))
    head += [(name, entity[key]) for name, key in named if entity.get(key)]
    parts: list[RenderableType] = [pairs(head), Text(), Text("Variations", style="bold")]
    for function in entity["functions"]:
        arguments = ", ".join(map(_argument, function["arguments"]))
        signature = f"{entity['name']}({arguments}) -> {function['returnType']}"
        details = [(a["name"], a["description"]) for a in function["arguments"] if a["description"]]
        if function["description"] and function["description"] != entity.get("description"):
            details.insert(0, ("", function["description"]))
        parts += [Text(f"  {signature}"), pairs([(f"    {name}", said) for name, said in details])]
    return Group(*parts)


def _argument(argument: JsonObject) -> str:
    text = f"{argument['name']} {argument['type']}".strip()
    return f"{text}[]" if argument["isVariadic"] else text


def _types(entity: JsonObject) -> RenderableType:
    if not entity["types"]:
        return Text("No types.", style="dim")
    rows = [[name, type_text(schema)] for name, schema in sorted(entity["types"].items())]
    return Grid(["Type Name", "Schema"], rows)


def _terminated(entity: JsonObject) -> RenderableType:
    done = "was terminated" if entity["wasTerminated"] else "was not running"
    return Text(f"Query {entity['queryId']} {done}.")


def _asserted(what: Callable[[JsonObject], str]) -> Renderer:
    def renderer(entity: JsonObject) -> RenderableType:
        return Text(f"{what(entity)} {'exists' if entity['exists'] else 'does not exist'}.")

    return renderer


def _schema_name(entity: JsonObject) -> str:
    subject = f"Schema of subject {entity['subject']}" if entity.get("subject") else "Schema"
    return subject if entity.get("id") is None else f"{subject} with id {entity['id']}"


def _several(key: str, one: Renderer) -> Renderer:
    def renderer(entity: JsonObject) -> RenderableType:
        parts: list[RenderableType] = []
        for item in entity[key]:
            parts += [one(item), Text()]
        return Group(*parts) if parts else Text("Nothing to describe.", style="dim")

    return renderer


_LISTINGS: dict[str, Listing] = {"queries": _QUERIES, "upgrades": _UPGRADES}
"""The lists below which more is shown."""

_CONNECTOR_COLUMNS: tuple[tuple[str, Callable[[Any], object]], ...] = (
    ("Connector Name", _get("name")),
    ("Type", lambda item: item["type"].upper()),
    ("Class", _get("className")),
    ("Status", _get("state")),
)
RENDERERS: dict[str, Renderer] = {
    "message": _message,
    "currentStatus": _status,
    "dry_run": _dry_run,
    "warning_entity": _warning,
    "consistencyToken": lambda entity: Text(clean(entity["consistencyToken"])),
    "properties": _properties,
    "streams": _sources("streams", "streams"),
    "tables": _sources("tables", "tables"),
    "source_descriptions": _several("sourceDescriptions", describe_source),
    "sourceDescription": lambda entity: describe_source(entity["sourceDescription"]),
    "queries": _queries,
    "upgrades": _upgrades,
    "upgradeDescription": lambda entity: describe_upgrade(entity["upgradeDescription"]),
    "query_descriptions": _several("queryDescriptions", describe_query),
    "queryDescription": lambda entity: describe_query(entity["queryDescription"]),
    "kafka_topics": Listing("topics", "No topics.", _TOPIC_COLUMNS),
    "kafka_topics_extended": Listing(
        "topics",
        "No topics.",
        (
            *_TOPIC_COLUMNS,
            ("Consumers", _get("consumerCount")),
            ("Consumer Groups", _get("consumerGroupCount")),
        ),
    ),
    "describe_function": _function,
    "function_names": Listing(
        "functions",
        "No functions.",
        (("Function Name", _get("name")), ("Type", _get("type")), ("Category", _get("category"))),
    ),
    "connector_info": lambda entity: Text(f"Created connector {entity['info']['name']}"),
    "drop_connector": lambda entity: Text(f"Dropped connector {entity['connectorName']}"),
    "connector_description": describe_connector,
    "connector_list": Listing("connectors", "No connectors.", _CONNECTOR_COLUMNS),
    "connector_plugins_list": Listing(
        "connectorsPlugins",
        "No connector plugins.",
        (
            ("Class", _get("className")),
            ("Type", lambda item: item["type"].upper()),
            ("Version", _get("version")),
        ),
    ),
    "type_list": _types,
    "variables": Listing(
        "variables", "No variables.", (("Variable Name", _get("name")), ("Value", _get("value")))
    ),
    "terminate_query": _terminated,
    "assert_topic": _asserted(lambda entity: f"Topic {entity['topicName']}"),
    "assert_schema": _asserted(_schema_name),
}
