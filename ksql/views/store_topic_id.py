"""Records the Kafka topic id that a table's stores were filled from, in a file next to them.

A topic that is deleted and made again keeps its name, not its id. Its offsets begin again. A store
that continues at its position keeps rows of the former topic, and leaves out the first records of
the new one. Stores of versions that noted no id adopt the one that they find.
"""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Final

from ksql.core import versioned_json
from ksql.core.files import write_atomically
from ksql.views.stores.base import NewerStore, StoreDamaged, StoreFailed

if TYPE_CHECKING:
    from pathlib import Path

FILE: Final = "topic.json"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_VERSIONS: Final[versioned_json.Fields] = {1: frozenset({"topic.id"})}


def read(directory: Path) -> str:
    """Return the id that is noted in a table's directory; empty if there is none.

    Raises: NewerStore, StoreDamaged, StoreFailed.
    """
    file = directory / FILE
    try:
        _, body = versioned_json.read(file.read_text(encoding="utf-8"), _VERSIONS)
        return versioned_json.text_of(body, "topic.id")
    except FileNotFoundError:
        return ""
    except versioned_json.NewerVersion as error:
        raise NewerStore(str(file), error.found, error.known) from error
    except ValueError as error:
        raise StoreDamaged(str(file), str(error)) from error
    except OSError as error:
        raise _failed(file, error) from error


def write(directory: Path, topic_id: str) -> None:
    """Note the id.

    Raises: StoreFailed.
    """
    try:
        write_atomically(directory / FILE, json.dumps({"version": 1, "topic.id": topic_id}))
    except OSError as error:
        raise _failed(directory / FILE, error) from error


def _failed(file: Path, error: OSError) -> StoreFailed:
    return StoreFailed(str(file), str(error), full=error.errno in _FULL)
