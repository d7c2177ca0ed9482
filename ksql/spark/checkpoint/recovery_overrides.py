"""The operator's permits to leave a checkpoint behind; each query has them for its first launch.

They are given for one start of the server, to mend what is wrong at that time. A later
fault of a checkpoint is another matter, and an error of its query again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from ksql.core.query_version import QueryVersion

_ALL: Final = "all"


class RecoveryOverrides:
    """The queries that may begin again, or continue from an older checkpoint ("all": every one)."""

    def __init__(self, anew: Collection[str], older: Collection[str]) -> None:
        self._anew = frozenset(anew)
        self._older = frozenset(older)
        self._over: set[QueryVersion] = set()

    def anew(self, version: QueryVersion) -> bool:
        """Return whether it may begin from the start where its checkpoint does not fit."""
        return self._given(self._anew, version)

    def older(self, version: QueryVersion) -> bool:
        """Return whether it may continue from a checkpoint that lacks batches."""
        return self._given(self._older, version)

    def end(self, version: QueryVersion) -> None:
        """End the permits of a version whose checkpoint fits."""
        self._over.add(version)

    def _given(self, chosen: frozenset[str], version: QueryVersion) -> bool:
        return bool(chosen & {version.query_id, _ALL}) and version not in self._over
