"""The incarnations of checkpoints, each with its random name; paths to state schemas mended.

A query's id can come again (a chosen QUERY_ID, a terminated cluster, a command that was never
written). So do the numbers of its batches. Kafka's notes of batches are therefore kept under the
id and the incarnation's random name. This name is written into the checkpoint before the first
start. A replacement continues the incarnation of the plan that it replaces.

The paths to the schemas of a query's state lead into its checkpoint, wherever that lies.

Spark notes them with their whole paths and knows no other form, in
``state/OPERATOR/_metadata/v2/BATCH``: a line ``v2``, then one JSON object. In a checkpoint that was
renamed, moved home or restored elsewhere these lead to where it lay before.

Source: Spark's OperatorStateMetadataV2 and its reader.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ksql.core import (
    STATE_METADATA_UNKNOWN,
    BeforeFormatZero,
    ServerError,
    sync_folder,
    versioned_json,
    write_atomically,
)
from ksql.spark.checkpoint.checkpoint import CheckpointDamaged, NewerCheckpoint, Position, readable

if TYPE_CHECKING:
    from ksql.core import KsqlError


_log = logging.getLogger(__name__)
FORMAT: Final = 1
_VERSIONS: Final[versioned_json.Fields] = {FORMAT: frozenset({"incarnation"})}
_FILE: Final = "life.json"
_SPARKS: Final = "metadata"  # Spark writes it before the first batch
_TRIAL: Final = "trial.json"


class CheckpointMissing(ServerError):
    """A query that has run before, and whose checkpoint is not where it should be."""

    def __init__(self, query_id: str, checkpoint: Path) -> None:
        super().__init__(
            f"the checkpoint of query {query_id} is missing: {checkpoint} is not there",
            detail="Its state and its place in its sources are lost, or lie elsewhere. It is not "
            "started over by itself: that would skip or repeat records and write new counts over "
            "old ones.",
            hint="Bring the directory back (`ksql state list` shows what was moved aside) and "
            f"start again; or start once with -o ksql.state.anew={query_id} (or =all) to start "
            f"over on purpose; or TERMINATE {query_id}.",
        )


class OlderCheckpoint(ServerError):
    """A checkpoint that lacks batches whose results Kafka holds: a copy, or the rest of a loss."""

    def __init__(self, query_id: str, checkpoint: Path, planned: int | None, written: int) -> None:
        last = "none" if planned is None else f"batch {planned} as its last"
        super().__init__(
            f"the checkpoint of query {query_id} is older than what the query has written: "
            f"{checkpoint} knows {last}, Kafka has batch {written} of it",
            detail="It was restored from a copy, or lost its last files with the power. The "
            "query writes each number once (exactly_once_v2): new batches would reuse committed "
            "numbers, so they would be skipped and their records lost.",
            hint="Bring the newest checkpoint back and start again; or start once with "
            f"-o ksql.state.older={query_id} (or =all) to continue from this one, which writes "
            "again what was written since; or start once with "
            f"-o ksql.state.anew={query_id} to start over; or TERMINATE {query_id}.",
        )


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One incarnation of a query, by its name."""

    name: str


def begin(checkpoint: Path, name: str) -> Incarnation:
    """Begin an incarnation in a directory; what is there already becomes this incarnation's.

    Raises: OSError.
    """
    checkpoint.mkdir(parents=True, exist_ok=True)
    write_atomically(checkpoint / _FILE, json.dumps({"format": FORMAT, "incarnation": name}) + "\n")
    return Incarnation(name)


def check_present(query_id: str, checkpoint: Path, incarnation: Incarnation) -> None:
    """Refuse a checkpoint that has gone or holds another incarnation: Spark would begin again.

    Raises: CheckpointMissing, CheckpointDamaged, NewerCheckpoint.
    """
    if incarnation_of(checkpoint) != incarnation:
        raise CheckpointMissing(query_id, checkpoint)


def lost(query_id: str, checkpoint: Path, name: str) -> KsqlError | None:
    """Return what says that the checkpoint of an incarnation that runs has gone; usually None."""
    try:
        check_present(query_id, checkpoint, Incarnation(name))
    except CheckpointMissing as missing:
        return missing
    except (CheckpointDamaged, NewerCheckpoint):
        return None  # the next launch reports it
    return None


def check_age(query_id: str, checkpoint: Path, next_batch: int, planned: Position | None) -> None:
    """Refuse a checkpoint that has not planned all that its incarnation has written.

    ``next_batch`` is the number after the last one that Kafka holds of this incarnation.

    Raises: OlderCheckpoint.
    """
    known = planned.batch if planned is not None else None
    if next_batch > (-1 if known is None else known) + 1:
        raise OlderCheckpoint(query_id, checkpoint, known, next_batch - 1)


def incarnation_of(checkpoint: Path) -> Incarnation | None:
    """Return the incarnation that a directory holds; None if it holds none.

    Raises: CheckpointDamaged, NewerCheckpoint.
    """
    file = checkpoint / _FILE
    try:
        with readable(file):
            _, body = versioned_json.read(file.read_text(encoding="utf-8"), _VERSIONS, "format")
            return Incarnation(versioned_json.text_of(body, "incarnation"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointDamaged(file, str(error)) from error


def require(query_id: str, checkpoint: Path) -> Incarnation:
    """Return the incarnation that a query continues, wherever its checkpoint was written.

    Raises: CheckpointMissing, CheckpointDamaged, NewerCheckpoint, STATE_METADATA_UNKNOWN,
        BeforeFormatZero.
    """
    _refuse_older(query_id, checkpoint)
    incarnation = incarnation_of(checkpoint)
    if incarnation is None:
        raise CheckpointMissing(query_id, checkpoint)
    repair_paths(checkpoint)
    return incarnation


def _refuse_older(query_id: str, checkpoint: Path) -> None:
    """Refuse what versions before format zero have left: Spark would begin again, or go wrong.

    Raises: BeforeFormatZero.
    """
    what, trial = f"the checkpoint of query {query_id}", checkpoint / _TRIAL
    remedy = f"Or start once with -o ksql.state.anew={query_id} (or =all) to start over."
    holds = (checkpoint / _SPARKS).exists()
    elsewhere = Path(checkpoint.as_uri().removeprefix("file://"))  # its escapes taken for letters
    if elsewhere != checkpoint and not holds and (elsewhere / _SPARKS).exists():
        detail = f"It lies in {elsewhere}, where such versions wrote it."
        raise BeforeFormatZero(what, detail, remedy)
    if holds and not (checkpoint / _FILE).exists():
        detail = f"It has no {_FILE}, which such versions did not write: {checkpoint}"
        raise BeforeFormatZero(what, detail, remedy)
    if trial.exists():
        detail = f"{trial} holds the plan of a replacement that such a version has begun."
        raise BeforeFormatZero(what, detail, "It finishes the batch of that plan.")


def holds_anything(checkpoint: Path) -> bool:
    """Return whether there is a directory with anything in it."""
    return checkpoint.is_dir() and any(checkpoint.iterdir())


_FORM: Final = "v2"
_STORES: Final = "stateStoreInfo"
_PATHS: Final = "stateSchemaFilePaths"
_INSIDE: Final = re.compile(r"file:/.*(/state/(\d+)/_stateSchema/[^/]+/[^/]+)", re.DOTALL)


def repair_paths(checkpoint: Path) -> None:
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
