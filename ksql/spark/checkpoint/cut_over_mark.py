"""The mark of the cut-over to a checkpoint's version, in a small file of the checkpoint.

Before the version runs as its query for the first time, the topic of the query's result is brought
to the version's rows. The mark says that this is done: it is not done a second time, as the topic
that holds the rows is deleted then.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from ksql.core import versioned_json, write_atomically
from ksql.spark.checkpoint.checkpoint import readable

VERSION: Final = 1
_FILE: Final = "cutover.json"
_NUMBERS: Final = ("number", "changed", "added", "removed", "equal")
_FLAGS: Final = ("snapshot", "done")
_VERSIONS: Final[versioned_json.Fields] = {VERSION: frozenset({*_NUMBERS, *_FLAGS})}


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOverMark:
    """The steps of cut-over ``number`` that are done, and the keys that it has written.

    ``snapshot``: the former version's rows are kept. ``done``: the result's topic has the rows of
    the version. The other numbers are keys, by what became of them in that topic.
    """

    number: int
    snapshot: bool = False
    done: bool = False
    changed: int = 0
    added: int = 0
    removed: int = 0
    equal: int = 0


def read(checkpoint: Path) -> CutOverMark | None:
    """Return the mark of the checkpoint's last cut-over; None if there was none.

    Raises: CheckpointDamaged, NewerCheckpoint, OSError.
    """
    file = checkpoint / _FILE
    try:
        with readable(file):
            _, body = versioned_json.read(file.read_text(encoding="utf-8"), _VERSIONS)
            del body["version"]
            for name, kind in (*((n, int) for n in _NUMBERS), *((n, bool) for n in _FLAGS)):
                if type(body[name]) is not kind:
                    raise ValueError(f"{body[name]!r:.80} is no {name}")
            return CutOverMark(**body)
    except FileNotFoundError:
        return None


def write(checkpoint: Path, mark: CutOverMark) -> None:
    """Write the mark, which lasts from then on.

    Raises: OSError.
    """
    write_atomically(checkpoint / _FILE, json.dumps({"version": VERSION, **asdict(mark)}))
