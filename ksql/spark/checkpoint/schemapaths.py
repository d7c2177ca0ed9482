"""The paths to the schemas of a query's state: into its checkpoint, wherever that lies.

Spark notes them with their whole paths and knows no other form, in
``state/OPERATOR/_metadata/v2/BATCH``: a line ``v2``, then one JSON object. In a checkpoint that was
renamed, moved home or restored elsewhere these lead to where it lay before.

Source: Spark's OperatorStateMetadataV2 and its reader.
"""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any, Final

from ksql.core import versioned_json
from ksql.core.error_table import STATE_METADATA_UNKNOWN
from ksql.core.files import sync_folder, write_atomically

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger(__name__)

_FORM: Final = "v2"
_STORES: Final = "stateStoreInfo"
_PATHS: Final = "stateSchemaFilePaths"
_INSIDE: Final = re.compile(r"file:/.*(/state/(\d+)/_stateSchema/[^/]+/[^/]+)", re.DOTALL)


def lead_home(checkpoint: Path) -> None:
    """Make all paths of a checkpoint lead into it.

    A file changes at once or not at all; what a crash prevents is done by the next call.

    Raises: STATE_METADATA_UNKNOWN, OSError.
    """
    for file in sorted(checkpoint.glob(f"state/*/_metadata/{_FORM}/*")):
        if file.name.isdecimal():  # else it is a checksum, or not whole
            try:
                _lead_home(checkpoint, file)
            except ValueError as error:
                raise STATE_METADATA_UNKNOWN(file=file, reason=str(error)) from error


def _lead_home(checkpoint: Path, file: Path) -> None:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return  # a query that runs clears old ones away
    metadata, expected = _found_and_wanted(checkpoint, file.parents[2].name, text)
    if expected == metadata:
        return
    # first, as a checksum of the former text would refuse the new one
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    sync_folder(file.parent)
    write_atomically(file, f"{_FORM}\n{json.dumps(expected, separators=(',', ':'))}")
    _log.warning("checkpoint_was_moved", extra={"file": str(file)})


def _found_and_wanted(
    checkpoint: Path, operator: str, text: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a file holds, and what it should hold."""
    form, _, body = text.partition("\n")
    if form != _FORM:
        raise ValueError(f"it begins with {form!r:.20}")
    metadata = versioned_json.parse(body)
    stores = []
    for store in _listed(metadata, _STORES):
        noted = [_inside(checkpoint, operator, path) for path in _listed(store, _PATHS)]
        stores.append({**store, _PATHS: noted})
    return metadata, {**metadata, _STORES: stores}


def _listed(holder: object, name: str) -> list[Any]:
    listed = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(listed, list):
        raise ValueError(f'it has no list "{name}" where one belongs')
    return listed


def _inside(checkpoint: Path, operator: str, path: object) -> str:
    match = _INSIDE.fullmatch(path) if isinstance(path, str) else None
    if match is None or match[2] != operator:
        raise ValueError(f"{path!r:.200} is no path of a schema of operator {operator}")
    return f"file:{checkpoint}{match[1]}"
