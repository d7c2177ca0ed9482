"""Checks whether data written with one Avro schema can be read with another.

Source: the Avro specification 1.11, schema resolution; Confluent's names of the differences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.formats.avro import tree
from ksql.formats.kind import Comparison, Difference, Roles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ksql.formats.avro.tree import Node

_WIDENED: Final[Mapping[str, frozenset[str]]] = {
    "long": frozenset({"int"}),
    "float": frozenset({"int", "long"}),
    "double": frozenset({"int", "long", "float"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
"""What a reader of the type takes besides the type itself."""


def differences(reader: Node, writer: Node, roles: Roles) -> list[Difference]:
    """Return all reasons why ``reader`` cannot read what ``writer`` wrote."""
    return _Comparison(roles, _Comparison(roles)).compare(reader, writer, "")


class _Comparison(Comparison["Node"]):
    """Whether some branch of a union fits is asked of ``prober``, whose paths nobody sees."""

    def __init__(self, roles: Roles, prober: _Comparison | None = None) -> None:
        super().__init__()
        self._roles = roles
        self._prober = prober or self

    def differences(self, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        match reader, writer:
            case (tree.Union(), _) | (_, tree.Union()):
                yield from self._unions(reader, writer, path)
            case tree.Array(), tree.Array():
                yield from self.compare(reader.items, writer.items, f"{path}/items")
            case tree.Map(), tree.Map():
                yield from self.compare(reader.values, writer.values, f"{path}/values")
            case tree.Primitive(), tree.Primitive():
                wider = _WIDENED.get(reader.kind, frozenset())
                if reader.kind != writer.kind and writer.kind not in wider:
                    yield self._type_mismatch(reader, writer, path)
            case (
                (tree.RecordType(), tree.RecordType())
                | (tree.Enum(), tree.Enum())
                | (tree.Fixed(), tree.Fixed())
            ):
                yield from self._named(reader, writer, path)
            case _:
                yield self._type_mismatch(reader, writer, path)

    def _unions(self, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        match reader, writer:
            case tree.Union(), tree.Union():
                for index, branch in enumerate(writer.branches):
                    if not self._some_branch_reads(reader, branch):
                        yield self._missing_branch(branch, f"{path}/{index}")
            case tree.Union(), _:
                if not self._some_branch_reads(reader, writer):
                    yield self._missing_branch(writer, path)
            case _, tree.Union():
                for branch in writer.branches:
                    yield from self.compare(reader, branch, path)
            case _:
                return

    def _some_branch_reads(self, reader: tree.Union, writer: Node) -> bool:
        return any(not self._prober.compare(one, writer, "") for one in reader.branches)

    def _named(self, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        if isinstance(reader, tree.Named) and isinstance(writer, tree.Named):
            same = reader.short == writer.short or writer.name in reader.aliases
            if not same:
                yield Difference(
                    "NAME_MISMATCH",
                    f"{path}/name",
                    f"The name at path {path}/name has changed: expected {writer.name}",
                    f"expected: {writer.name}",
                )
        match reader, writer:
            case tree.RecordType(), tree.RecordType():
                yield from self._fields(reader, writer, path)
            case tree.Enum(), tree.Enum():
                yield from self._symbols(reader, writer, f"{path}/symbols")
            case tree.Fixed(), tree.Fixed() if reader.size != writer.size:
                yield Difference(
                    "FIXED_SIZE_MISMATCH",
                    f"{path}/size",
                    f"The size at path {path}/size is {reader.size} in the {self._roles.reader}"
                    f" schema and {writer.size} in the {self._roles.writer} schema",
                    f"expected: {writer.size}, found: {reader.size}",
                )
            case _:
                return

    def _fields(
        self, reader: tree.RecordType, writer: tree.RecordType, path: str
    ) -> Iterator[Difference]:
        written = {one.name: one for one in writer.fields}
        for index, one in enumerate(reader.fields):
            where = f"{path}/fields/{index}"
            written_field = _written_field(one, written)
            if written_field is not None:
                yield from self.compare(one.type, written_field.type, f"{where}/type")
            elif not one.has_default:
                yield Difference(
                    "READER_FIELD_MISSING_DEFAULT_VALUE",
                    where,
                    f"The field {one.name} at path {where} in the {self._roles.reader} schema has"
                    f" no default value and is missing in the {self._roles.writer} schema",
                    one.name,
                )

    def _symbols(self, reader: tree.Enum, writer: tree.Enum, path: str) -> Iterator[Difference]:
        missing = [one for one in writer.symbols if one not in reader.symbols]
        if missing and reader.default is None:
            yield Difference(
                "MISSING_ENUM_SYMBOLS",
                path,
                f"The {self._roles.reader} schema lacks the symbols {', '.join(missing)} at path"
                f" {path} of the {self._roles.writer} schema",
                f"[{', '.join(missing)}]",
            )

    def _missing_branch(self, writer: Node, path: str) -> Difference:
        where = path or "/"
        return Difference(
            "MISSING_UNION_BRANCH",
            where,
            f"The {self._roles.reader} schema has no branch at path {where} for the type"
            f" {writer.kind.upper()} of the {self._roles.writer} schema",
            f"reader union lacking writer type: {writer.kind.upper()}",
        )

    def _type_mismatch(self, reader: Node, writer: Node, path: str) -> Difference:
        where = path or "/"
        return Difference(
            "TYPE_MISMATCH",
            where,
            f"The type at path {where} in the {self._roles.reader} schema does not match that of"
            f" the {self._roles.writer} schema",
            f"reader type: {reader.kind.upper()} not compatible with"
            f" writer type: {writer.kind.upper()}",
        )


def _written_field(reader: tree.Field, written: Mapping[str, tree.Field]) -> tree.Field | None:
    for name in (reader.name, *reader.aliases):
        if name in written:
            return written[name]
    return None
