"""The rights in Kafka that the documents list, read from their table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_PAGE = Path(__file__).resolve().parents[1] / "docs" / "access.md"
_SECTION = re.compile(r"## What Kafka must allow\n(.*?)\n## ", re.DOTALL)
_ROW = re.compile(r"^\| (Topic|Group|TransactionalId|Cluster) \| (.*?)\s*\| (.*?) \|", re.MULTILINE)


class Right(NamedTuple):
    """A kind of resource, a name or the beginning of names, and what may be done with it."""

    kind: str
    name: str
    prefix: bool
    operations: frozenset[str]

    def fits(self, kind: str, name: str) -> bool:
        """Whether it is for that resource."""
        same = name.startswith(self.name) if self.prefix else name == self.name
        return kind == self.kind and same


def rights(service_id: str, users_topics: str) -> Iterator[Right]:
    """The rights of a service, whose statements are about topics whose names begin so."""
    (section,) = _SECTION.findall(_PAGE.read_text("utf-8"))
    for kind, names, operations in _ROW.findall(section):
        allowed = frozenset(re.findall(r"[A-Z]\w+", operations.split(";")[0]))
        if kind == "Cluster":
            yield Right(kind, "kafka-cluster", False, allowed)
        elif "`" not in names:
            yield Right(kind, users_topics, True, allowed)
        for name in re.findall(r"`([a-zA-Z_*-]+)`", names):
            if "ksql." not in name:
                whole = re.sub(r"(?<![A-Za-z])ID", service_id, name)
                yield Right(kind, whole.rstrip("*"), whole.endswith("*"), allowed)
