"""Formats: the bytes of a record to values and back. One folder and one row of the table each."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.formats.implementation import *
    from ksql.formats.kind import *
    from ksql.formats.registered_reader import *
    from ksql.formats.schema_registry import *
    from ksql.formats.schemas import *
    from ksql.formats.serde import *
    from ksql.formats.table import (
        FORMATS,
        MapInKey,
        Side,
        UnsupportedProperties,
        configured_wrap,
        is_unwrapped,
        serde_features,
        serde_for,
        validate,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "implementation": "Columns NoRegistry within",
            "kind": "BACKWARD Difference FORWARD Roles SchemaWithImports explained",
            "schema_registry": (
                "MAGIC MemoryRegistry MutedRegistry PREFIX_BYTES Reference Registered "
                "Registry RegistryUnreachable SandboxRegistry Schema SchemaNotFound "
                "SchemaRejected UNNAMED imports subject_name"
            ),
            "schemas": (
                "FORMAT_OF FoundSchema JSON_SR_CONVERTER KINDS check_given_schema "
                "inferred_columns key_schema_fits key_schema_name kind_of look_up "
                "schema_for topic_serde"
            ),
            "serde": "DecodeError EncodeError SKIP Serde Skip",
            "table": (
                "FORMATS MapInKey Side UnsupportedProperties configured_wrap "
                "is_unwrapped serde_features serde_for validate"
            ),
            "registered_reader": "RegisteredReader shape",
        },
    )
