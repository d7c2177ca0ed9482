"""Numbers that were computed of keys, kept while there is room: the same keys come again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


class Remembered:
    """Computes the numbers of keys, each once while it is remembered; for any number of threads.

    ``known`` are those that it has; with one more than ``most`` all are forgotten.
    """

    def __init__(self, compute: Callable[[Sequence[bytes]], Iterable[int]], most: int) -> None:
        self.known: dict[bytes, int] = {}
        self._compute = compute
        self._most = most

    def of(self, keys: Iterable[bytes]) -> Mapping[bytes, int]:
        """Return the numbers of at least these keys."""
        known, different = self.known, dict.fromkeys(keys)
        new = [key for key in different if key not in known]
        if not new:
            return known
        if len(known) + len(new) > self._most:
            known, new = {}, list(different)
        known.update(zip(new, self._compute(new), strict=True))
        self.known = known
        return known
