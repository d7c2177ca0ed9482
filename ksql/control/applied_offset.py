"""The position up to which the log was carried out: a small file in the state directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ksql.core import versioned_json
from ksql.core.error_table import APPLIED_OFFSET_DAMAGED
from ksql.core.files import write_atomically

if TYPE_CHECKING:
    from pathlib import Path

VERSION: Final = 1
_VERSIONS: Final[versioned_json.Fields] = {VERSION: frozenset({"carried_out"})}


class AppliedOffsetFile:
    """The engine's ``AppliedOffset`` in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: int | None = None

    def read(self) -> int | None:
        """Return the mark; None if there never was one.

        Raises: MarkDamaged.
        """
        if self._known is None and self._file.exists():
            try:
                _, fields = versioned_json.read(self._file.read_text(encoding="utf-8"), _VERSIONS)
                self._known = int(fields["carried_out"])
            except (OSError, TypeError, ValueError, versioned_json.NewerVersion) as problem:
                raise APPLIED_OFFSET_DAMAGED(file=self._file, reason=str(problem)) from problem
        return self._known

    def write(self, offset: int) -> None:
        """Move it, for good."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file, json.dumps({"version": VERSION, "carried_out": offset}))
        self._known = offset
