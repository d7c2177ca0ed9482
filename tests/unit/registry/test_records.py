"""The bytes are those of Confluent's registry, as its documentation and its dumps show them."""

from __future__ import annotations

import pytest

from ksql.formats.schema_registry import Reference, Schema
from ksql.registry import records as r
from ksql.registry.records import UnreadableRecord, decode, encode

AVRO = Schema("AVRO", '{"type":"string"}')
PROTO = Schema("PROTOBUF", 'syntax = "proto3";\n', (Reference("o.proto", "other", 2),))

RECORDS = [
    (
        r.VersionSet(subject="s-value", version=1, id=7, schema=AVRO),
        b'{"keytype":"SCHEMA","subject":"s-value","version":1,"magic":1}',
        b'{"subject":"s-value","version":1,"id":7,"schema":"{\\"type\\":\\"string\\"}","deleted":false}',
    ),
    (
        r.VersionSet(subject="p", version=3, id=9, schema=PROTO, deleted=True),
        b'{"keytype":"SCHEMA","subject":"p","version":3,"magic":1}',
        b'{"subject":"p","version":3,"id":9,"schemaType":"PROTOBUF","references":'
        b'[{"name":"o.proto","subject":"other","version":2}],'
        b'"schema":"syntax = \\"proto3\\";\\n","deleted":true}',
    ),
    (
        r.VersionGone("s", 2),
        b'{"keytype":"SCHEMA","subject":"s","version":2,"magic":1}',
        None,
    ),
    (
        r.ConfigSet("", "FULL"),
        b'{"keytype":"CONFIG","subject":null,"magic":0}',
        b'{"compatibilityLevel":"FULL"}',
    ),
    (
        r.ConfigSet("s", "NONE", normalize=True),
        b'{"keytype":"CONFIG","subject":"s","magic":0}',
        b'{"normalize":true,"compatibilityLevel":"NONE"}',
    ),
    (r.ConfigSet("s"), b'{"keytype":"CONFIG","subject":"s","magic":0}', None),
    (
        r.ModeSet("", "READONLY"),
        b'{"keytype":"MODE","subject":null,"magic":0}',
        b'{"mode":"READONLY"}',
    ),
    (r.ModeSet("s"), b'{"keytype":"MODE","subject":"s","magic":0}', None),
    (
        r.SubjectDeleted("s", 4),
        b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}',
        b'{"subject":"s","version":4}',
    ),
    (
        r.SubjectCleared("s"),
        b'{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}',
        b'{"subject":"s"}',
    ),
    (
        r.Remembered(12, {"s": 3}, moved_in=True),
        b'{"keytype":"NOOP","magic":0}',
        b'{"format":"ksql-spark/1","lastId":12,"lastVersions":{"s":3},"movedIn":true}',
    ),
]


@pytest.mark.parametrize(("change", "key", "value"), RECORDS)
def test_records_have_confluents_form_and_are_read_back(change, key, value):
    assert encode(change) == (key, value)
    assert decode(key, value) == change


def test_additions_of_confluents_registry_are_kept():
    key = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    value = (
        b'{"subject":"s","version":1,"id":1,"md5":"1B2M2Y8AsgTpgAmY7PhCfg==",'
        b'"ruleSet":{"domainRules":[]},"schema":"\\"int\\"","deleted":false}'
    )
    record = decode(key, value)
    assert isinstance(record, r.VersionSet)
    assert record == r.VersionSet(subject="s", version=1, id=1, schema=Schema("AVRO", '"int"'))
    assert encode(record) == (key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"keytype":"NOOP","magic":0}', None),
        (b'{"keytype":"CONTEXT","tenant":"default","context":".","magic":0}', b"{}"),
        (b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', None),
    ],
)
def test_irrelevant_records_are_skipped(key, value):
    assert decode(key, value) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"text", None),
        (b"{}", None),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"subject":"s"}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b"[1]"),
    ],
)
def test_foreign_record_is_refused(key, value):
    with pytest.raises(UnreadableRecord, match="cannot be read"):
        decode(key, value)
