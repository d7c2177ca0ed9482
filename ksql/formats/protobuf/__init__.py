"""PROTOBUF."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.formats.protobuf import rows, schema
from ksql.formats.protobuf.text import BrokenProtobuf
