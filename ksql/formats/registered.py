"""The common part of the registry formats: the id before the bytes, a reader for each schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import KsqlError
from ksql.formats.schema_registry import (
    PREFIX_BYTES,
    Registry,
    RegistryUnreachable,
    Schema,
    SchemaNotFound,
    frame_id,
    framed,
)
from ksql.formats.serde import SKIP, DecodeError, EncodeError, Failed, Serde, Skip, UnreadableValue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.core import Row
    from ksql.formats.implementation import SerdeSpec
    from ksql.formats.kind import Kind

    RowReader = Callable[[bytes], Row | None]
    RowWriter = Callable[[Row], bytes | None]


class _Reading:
    """Records read as their schemas say."""

    def __init__(
        self,
        registry: Registry,
        build: Callable[[Schema], RowReader],
        hint: str,
        faults: tuple[type[Exception], ...],
    ) -> None:
        self._registry = registry
        self._build = build
        self._known: dict[int, RowReader | UnreadableValue] = {}
        self._hint = hint
        self._faults: tuple[type[Exception], ...] = (*faults, UnreadableValue, DecodeError)

    def one(self, data: bytes) -> Row | None:
        try:
            return self._reader(data)(data)
        except self._faults as error:
            raise _decode_error(error) from error

    def many(self, items: Sequence[bytes | None], failed: Failed) -> list[Row | Skip | None]:
        """Return a batch; most have one schema, so a reader is looked up where the id changes."""
        out: list[Row | Skip | None] = []
        prefix: bytes | None = None
        row: RowReader | None = None
        for data in items:
            if data is None:
                out.append(None)
                continue
            try:
                if row is None or data[:PREFIX_BYTES] != prefix:
                    row = None
                    row = self._reader(data)
                    prefix = data[:PREFIX_BYTES]
                out.append(row(data))
            except self._faults as error:
                failed(len(out), _decode_error(error))
                out.append(SKIP)
        return out

    def _reader(self, data: bytes) -> RowReader:
        """Return the reader of the schema that a record names; why there is none is kept too.

        Raises: DecodeError; RegistryUnreachable for a schema that is not known yet.
        """
        schema_id = frame_id(data, self._hint)
        reader = self._known.get(schema_id)
        if reader is None:
            reader = self._known[schema_id] = self._make(schema_id)
        if isinstance(reader, UnreadableValue):
            raise DecodeError(reader.message, reader.path)
        return reader

    def _make(self, schema_id: int) -> RowReader | UnreadableValue:
        try:
            schema = self._registry.by_id(schema_id)
        except SchemaNotFound as error:  # it may be there the next time
            raise DecodeError(error.message) from error
        try:
            return self._build(schema)
        except UnreadableValue as bad:
            return bad
        except RegistryUnreachable:
            raise
        except KsqlError as error:
            return UnreadableValue(f"Schema {schema_id} cannot be read: {error.message}", "")


def _decode_error(error: Exception) -> DecodeError:
    if isinstance(error, DecodeError):
        return error
    if isinstance(error, UnreadableValue):
        return DecodeError(error.message, f"${error.path}")
    return DecodeError(f"The bytes do not fit their schema: {error}")


class _RegisteredWriter:
    """The writer of our schema, which is looked up or registered at the first row."""

    def __init__(
        self, spec: SerdeSpec, kind: Kind, build: Callable[[Schema, bytes], RowWriter]
    ) -> None:
        self._spec = spec
        self._kind = kind
        self._build = build
        self._known: RowWriter | None = None

    def get(self) -> RowWriter:
        """Return the writer.

        Raises: RegistryUnreachable, SchemaRejected, SchemaNotFound.
        """
        if self._known is None:
            registry, format_ = self._spec.registry, self._spec.format
            if format_.schema_id is not None:
                chosen, schema = format_.schema_id, registry.by_id(format_.schema_id)
            else:
                columns, wrapped = self._spec.columns, self._spec.wrapped
                schema = self._kind.schema_for(columns, format_, wrapped=wrapped)
                latest = registry.latest(self._spec.subject)
                schema = self._kind.following(schema, latest.schema if latest else None)
                chosen = registry.register(self._spec.subject, schema)
            self._known = self._build(schema, framed(chosen))
        return self._known


def registered_serde(
    spec: SerdeSpec,
    kind: Kind,
    *,
    reader: Callable[[Schema], RowReader],
    writer: Callable[[Schema, bytes], RowWriter],
    faults: tuple[type[Exception], ...],
    hint: str = "",
) -> Serde:
    """Return the serde made of a reader per schema and a writer.

    ``faults`` are what broken bytes and unfit values make them raise, besides UnreadableValue. The
    serde also raises RegistryUnreachable: no record is at fault.
    """
    caught: tuple[type[Exception], ...] = (*faults, RecursionError)
    reading = _Reading(spec.registry, reader, hint, caught)
    ours_writer = _RegisteredWriter(spec, kind, writer)

    def encode_many(rows: Sequence[Row | None]) -> list[bytes | None]:
        write = ours_writer.get()
        out: list[bytes | None] = []
        for row in rows:
            try:
                out.append(None if row is None else write(row))
            except EncodeError as error:
                error.index = len(out)
                raise
            except caught as error:
                raise EncodeError(f"Cannot write the row: {error}", len(out)) from error
        return out

    return Serde(
        decode=lambda data: None if data is None else reading.one(data),
        encode=lambda row: None if row is None else encode_many([row])[0],
        decode_many=reading.many,
        encode_many=encode_many,
    )
