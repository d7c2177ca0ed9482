"""The schemas and rows of PROTOBUF; the format itself is in ``serde.py``."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.formats.protobuf import rows, schema
from ksql.formats.protobuf.text import BrokenProtobuf
