"""What must hold of the catalog after a case. Source: the corpora's rules, section 5."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ksql.syntax import ast
from ksql.syntax.parser import parse_one, split
from ksql.topics.formats import serde_features
from ksql.types.schema import Column, Role
from qtt.model import Case, Mismatch, Unsupported

if TYPE_CHECKING:
    from ksql.catalog.catalog import Catalog
    from ksql.catalog.model import DataSource


def check_post(case: Case, catalog: Catalog) -> None:
    """Check ``post.sources`` and ``post.topics``.

    Raises: Mismatch, Unsupported.
    """
    for wanted in case.post.get("sources") or ():
        if not any(_fits(wanted, source) for source in catalog.sources.values()):
            shown = "; ".join(_shown(source) for source in catalog.sources.values())
            raise Mismatch(f"no source is like {wanted}; there are {shown}")
    topics: Mapping[str, Any] = case.post.get("topics") or {}
    if topics.get("topics"):
        raise Unsupported("the names and schemas of Kafka Streams' internal topics")
    pattern = topics.get("blacklist")
    if pattern:
        known = {source.topic for source in catalog.sources.values()}
        found = [name for name in known if re.search(pattern, name)]
        if found:
            raise Mismatch(f"topics {found} should not be there")


def _shown(source: DataSource) -> str:
    return f"{source.kind} {source.name} ({source.schema})"


def _fits(wanted: Mapping[str, Any], source: DataSource) -> bool:
    return (
        wanted["name"] == source.name
        and wanted["type"].upper() == source.kind
        and _schema_fits(wanted.get("schema"), source)
        and _key_format_fits(wanted.get("keyFormat"), source)
        and _value_format_fits(wanted.get("valueFormat"), source)
        and _features_fit(wanted.get("keyFeatures"), source, "key")
        and _features_fit(wanted.get("valueFeatures"), source, "value")
        and wanted.get("isSource", source.read_only) == source.read_only
    )


def _schema_fits(text: str | None, source: DataSource) -> bool:
    if text is None:
        return True
    return columns_of(text) == [c for c in source.schema.columns if c.role is not Role.HEADERS]


def columns_of(text: str) -> list[Column]:
    """A schema's text as columns."""
    kind = "TABLE" if "PRIMARY KEY" in text else "STREAM"
    statement = parse_one(split(f"CREATE {kind} S ({text}) WITH (KAFKA_TOPIC='s');")[0]).statement
    assert isinstance(statement, ast.CreateSource)  # noqa: S101 - just written so
    return [
        Column(c.name, c.type, Role.KEY if "KEY" in c.mark else Role.VALUE)
        for c in statement.columns
    ]


def _key_format_fits(wanted: Mapping[str, Any] | None, source: DataSource) -> bool:
    if wanted is None:
        return True
    window = source.window
    size = wanted.get("windowSize")
    return (
        wanted.get("format", source.key_format.name) == source.key_format.name
        and wanted.get("windowType") == (window.kind if window else None)
        and (None if size is None else int(size)) == (window.size_ms if window else None)
    )


def _value_format_fits(wanted: Any, source: DataSource) -> bool:
    if wanted is None:
        return True
    name = wanted.get("format") if isinstance(wanted, Mapping) else wanted
    return name is None or name == source.value_format.name


def _features_fit(wanted: list[str] | None, source: DataSource, side: str) -> bool:
    if wanted is None:
        return True
    format_ = source.key_format if side == "key" else source.value_format
    columns = source.schema.key if side == "key" else source.schema.value
    return set(wanted) == set(serde_features(format_, columns, side))  # type: ignore[arg-type]
