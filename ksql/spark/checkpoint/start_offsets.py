"""The offsets where a query begins: a small file in its checkpoint, written before its start.

The file holds the offsets that "latest" meant when the query was made.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ksql.core import versioned_json
from ksql.core.files import write_atomically
from ksql.core.format_zero import BeforeFormatZero
from ksql.spark.checkpoint.checkpoint import offsets_of, readable

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.spark.checkpoint.checkpoint import Offsets

VERSION: Final = 1
FILE: Final = "starts.json"
_VERSIONS: Final[versioned_json.Fields] = {VERSION: frozenset({"offsets"})}


def write(file: Path, offsets: Offsets) -> None:
    """Write the offsets down.

    Raises: OSError.
    """
    write_atomically(file, json.dumps({"version": VERSION, "offsets": offsets}))


def read(file: Path) -> Offsets:
    """Return the offsets that were written down.

    Raises: CheckpointDamaged, NewerCheckpoint, BeforeFormatZero, OSError.
    """
    text = file.read_text(encoding="utf-8")
    with readable(file):
        body = versioned_json.parse(text)
        if isinstance(body.get("version", {}), dict):  # no version: at most a topic of that name
            raise BeforeFormatZero(str(file))
        _, body = versioned_json.read(text, _VERSIONS)
        return offsets_of(body["offsets"])
