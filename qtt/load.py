"""Test files to cases: formats, configs expanded, KLIP-28's lists of lists read."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ksql.formats import FORMAT_OF, KINDS, UNNAMED
from qtt import tokens
from qtt.model import (
    CaseRecord,
    ExpectedException,
    QueryTestCase,
    RestPart,
    SchemaDef,
    Statement,
    Step,
    TopicDef,
    WindowBounds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_HARNESS = "use.exact.numeric.comparison"
_SCRIPT = "test-script.sql"  # no test: what RUN SCRIPT runs
_SQL_CORPUS = "sql-tests"
_KINDS = {**KINDS, **{kind: kind for kind in FORMAT_OF}}
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
_DIRECTIVE = re.compile(r"^--@(\w+(?:\.\w+)*):\s*(.*?)\s*$", re.IGNORECASE)


class NotATestFile(Exception):
    """A file that cannot be read as tests."""


def load(path: Path) -> Iterator[QueryTestCase]:
    """All cases of a file or folder, in the order of the names.

    Raises: NotATestFile.
    """
    yield from _load(path, path if path.is_dir() else path.parent)


def _load(path: Path, root: Path) -> Iterator[QueryTestCase]:
    if path.is_dir():
        for child in sorted(path.rglob("*")):
            if child.suffix in (".json", ".sql") and child.name != _SCRIPT:
                yield from _load(child, root)
    elif path.suffix == ".sql":
        yield from _sql_blocks(path, root)
    else:
        try:
            yield from _json_cases(path)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise NotATestFile(f"{path}: {type(error).__name__}: {error}") from error


def _json_cases(path: Path) -> Iterator[QueryTestCase]:
    for test in tokens.parse_file(path.read_text()).get("tests", ()):
        if test.get("enabled") is False:
            continue
        name = f"{path.stem} - {test['name']}"
        if "responses" in test or "expectedError" in test:
            for suffix, text, _ in _expansions(test):
                yield _rest_case(name + suffix, test, text)
            continue
        for suffix, text, override in _expansions(test):
            yield _case(name + suffix, test, text, override)


def _expansions(test: dict[str, Any]) -> Iterator[tuple[str, str | None, dict[str, str]]]:
    properties = test.get("properties") or {}
    slot = next((k for k, v in properties.items() if str(v).upper() == "{CONFIG}"), None)
    for format_ in test.get("format") or [None]:
        for config in test.get("config") or [None]:
            suffix = f" - {format_}" if format_ is not None else ""
            override = {}
            if config is not None and slot is not None:
                suffix += f" - {slot}={config}"
                override = {slot: str(config)}
            yield suffix, format_, override


def _case(
    name: str, test: dict[str, Any], format_: str | None, override: dict[str, str]
) -> QueryTestCase:
    properties = {k: _text(v) for k, v in (test.get("properties") or {}).items()} | override
    exact = properties.pop(_HARNESS, "true").lower() == "true"
    return QueryTestCase(
        id=name,
        steps=tuple(_steps(test, format_)),
        outputs=tuple(
            _record(entry, default_time=None) for entry in _flat(test.get("outputs") or [])
        ),
        topics=tuple(map(_topic, test.get("topics") or [])),
        properties=properties,
        expected=_expected(test.get("expectedException")),
        post=test.get("post") or {},
        exact_numbers=exact,
    )


def case_of(name: str, script: str, inputs: list[Any], outputs: list[Any]) -> QueryTestCase:
    """Return the case of a script, the records that come in and those that must come out.

    Raises: NotATestFile.
    """
    test = {"statements": [script], "inputs": inputs, "outputs": outputs}
    try:
        return _case(name, test, None, {})
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise NotATestFile(f"{name}: {type(error).__name__}: {error}") from error


def _rest_case(name: str, test: dict[str, Any], format_: str | None) -> QueryTestCase:
    part = RestPart(
        responses=tuple(test.get("responses") or ()),
        properties={k: tokens.plain(v) for k, v in (test.get("properties") or {}).items()},
        error=test.get("expectedError"),
        waits=bool((test.get("inputConditions") or {}).get("waitForActivePushQuery")),
        proto=bool(test.get("testPullWithProtoFormat")),
        ordered=bool((test.get("outputConditions") or {}).get("verifyOrder")),
    )
    return replace(_case(name, {**test, "properties": {}}, format_, {}), rest=part)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _steps(test: dict[str, Any], format_: str | None) -> Iterator[Step]:
    statements, inputs = _nested(test["statements"], test.get("inputs") or [])
    for index in range(max(len(statements), len(inputs))):
        yield Step(
            tuple(_statement(s, format_) for s in (statements[index : index + 1] or [[]])[0]),
            tuple(_record(r, default_time=0) for r in (inputs[index : index + 1] or [[]])[0]),
        )


def _statement(item: Any, format_: str | None) -> Statement:
    sql, refused = (item, None) if isinstance(item, str) else (item["sql"], item["refused"])
    return Statement(sql.replace("{FORMAT}", format_) if format_ else sql, refused)


def _nested(*columns: list[Any]) -> list[list[list[Any]]]:
    """Plain lists are one step; next to a list of lists each item is a step, as KLIP-28 has it."""
    if any(isinstance(item, list) for items in columns for item in items):
        return [[item if isinstance(item, list) else [item] for item in items] for items in columns]
    return [[items] for items in columns]


def _flat(items: list[Any]) -> list[Any]:
    return [r for item in items for r in (item if isinstance(item, list) else [item])]


def _record(item: dict[str, Any], default_time: int | None) -> CaseRecord:
    time, window = item.get("timestamp"), item.get("window")
    return CaseRecord(
        topic=item["topic"],
        key=item.get("key"),
        value=item.get("value"),
        timestamp=default_time if time is None else int(time),
        window=_window(window) if window else None,
        headers=tuple(
            (h["KEY"], None if h["VALUE"] is None else base64.b64decode(h["VALUE"]))
            for h in item.get("headers") or ()
        ),
    )


def _window(item: dict[str, Any]) -> WindowBounds:
    kind = "session" if item["type"].lower() == "session" else "time"
    return WindowBounds(int(item["start"]), int(item["end"]), kind)  # type: ignore[arg-type] # one of two


def _topic(item: dict[str, Any]) -> TopicDef:
    return TopicDef(
        name=item["name"],
        partitions=int(item.get("partitions", 1)),
        replicas=int(item.get("replicas", 1)),
        key=_schema(item, "key"),
        value=_schema(item, "value"),
    )


def _schema(item: dict[str, Any], side: str) -> SchemaDef | None:
    schema, given = item.get(f"{side}Schema"), item.get(f"{side}SchemaId")
    if schema is None:
        return None
    kind = _kind(item.get(f"{side}Format"))
    references = tuple(
        (reference["name"], _kind(reference.get("format")), _schema_text(reference["schema"]))
        for reference in item.get(f"{side}SchemaReferences") or ()
    )
    return SchemaDef(kind, _schema_text(schema), None if given is None else int(given), references)


def _kind(format_: str | None) -> str:
    """The kind of a schema of that format, or of the kind that needs no name."""
    return _KINDS[(format_ or UNNAMED).upper()]


def _schema_text(schema: Any) -> str:
    """Protobuf's schemas are texts, the others JSON, in which a plain name is a text too."""
    if isinstance(schema, str) and not _AVRO_NAME.match(schema):
        return schema
    return tokens.dump(schema)


def _expected(item: dict[str, Any] | None) -> ExpectedException | None:
    if item is None:
        return None
    kind = item.get("type")
    short = kind.rsplit(".", 1)[-1] if kind else None
    return ExpectedException(short, item.get("message"), item.get("causeMessage"))


def _sql_blocks(path: Path, root: Path) -> Iterator[QueryTestCase]:
    stem = _sql_name(path, root)
    name: str | None = None
    lines: list[str] = []
    directives: dict[str, str] = {}
    for line in [*path.read_text().splitlines(), "--@test: "]:
        match = _DIRECTIVE.match(line)
        if match and match[1].lower() == "test":
            if name is not None:
                yield _block(f"{stem} - {name}", directives, lines, path.parent)
            name, lines, directives = match[2], [], {}
        elif match:
            directives[match[1].lower()] = match[2]
        elif not line.startswith("--"):
            lines.append(line)


def _sql_name(path: Path, root: Path) -> str:
    """An SQL file's path below the corpus, or below the folder that was asked for."""
    corpus = next((p for p in path.parents if p.name == _SQL_CORPUS), root)
    return path.relative_to(corpus).as_posix()


def _block(name: str, directives: dict[str, str], lines: list[str], scripts: Path) -> QueryTestCase:
    kind, message = directives.get("expected.error"), directives.get("expected.message")
    expected = ExpectedException(kind.rsplit(".", 1)[-1], message) if kind and message else None
    return QueryTestCase(
        id=name,
        steps=(),
        outputs=(),
        expected=expected,
        sql_block="\n".join(lines),
        scripts=scripts,
    )
