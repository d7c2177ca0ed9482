"""Two paths of one join: its loop, and the same plan step by step."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from ksql.exec.dataflow import stage_inputs
from ksql.exec.dataflow.program import RawBatch
from ksql.formats.schemas import topic_serde
from ksql.formats.serde import EncodeError
from ksql.spark.task.chunk import ChunkWriter, unpack_chunks
from tests.unit.exec.operators.support import Log


def stepwise(program):
    plain = copy(program)
    plain._fast = None
    return plain


def has_loop(program):
    """Whether the program's last step is one loop."""
    return program._fast is not None


def raw(topic, records, partition=0):
    keys, values, times, headers = zip(*records, strict=True)
    count = len(records)
    return RawBatch(
        [topic] * count, [partition] * count, range(count), list(times), keys, values,
        headers if any(headers) else None,
    )  # fmt: skip


def keyed(program, batches):
    ingest = program.ingest()
    return [each for batch in batches for each in ingest.add(batch, Log())]


def exchanged(program, batches):
    """The same after an exchange in chunks, as a stage gets them: each batch is of one task."""
    chunks: list[tuple[int, bytes]] = []
    for sender, batch in enumerate(batches):
        ingest, combined = program.ingest(), program.combined_windows
        writer = ChunkWriter(1, sender, laned=program.laned, combined=combined)
        chunks += writer.add(ingest.add(batch, Log()))
        chunks += [*writer.add(ingest.finish()), *writer.finish()]
    return unpack_chunks(chunk for _, chunk in chunks)


def refuse_nulls(monkeypatch):
    """Have the formats of programs made from now on refuse rows with a NULL."""

    def without_nulls(*given):
        serde = topic_serde(*given)

        def encode_many(rows):
            if any(None in row for row in rows):
                raise EncodeError("null used for required field")
            return serde.encode_many(rows)

        return replace(serde, encode_many=encode_many, printing=None)

    monkeypatch.setattr(stage_inputs, "topic_serde", without_nulls)
