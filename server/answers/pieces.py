"""Cuts an answer into pieces that are small in memory, and sends them in turns with other work.

A batch of few records may have rows without end: EXPLODE gives one for each item, and each repeats
the record's other columns. A client that takes all at once would keep the event loop for itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from ksql.serving import ResultRow

T = TypeVar("T")

PIECE_BYTES: Final = 1 << 18
_FIRST_ROWS: Final = 10
_GROWTH: Final = 10
_TURN_S: Final = 0.001


class Pieces:
    """Encodes the rows of one answer; how many at a time follows from the size of those before."""

    def __init__(self, encode: Callable[[Sequence[ResultRow]], bytes]) -> None:
        self._encode = encode
        self._count = _FIRST_ROWS

    def of(self, rows: Sequence[ResultRow], head: bytes = b"") -> Iterator[bytes]:
        """Yield the head with the first rows, then the other rows; no empty piece."""
        begin = 0
        while head or begin < len(rows):
            some = rows[begin : begin + self._count]
            begin += len(some)
            text = self._encode(some)
            if piece := head + text:
                yield piece
            head = b""
            if text:
                fitting = len(some) * PIECE_BYTES // len(text)
                self._count = max(1, min(fitting, self._count * _GROWTH))


async def in_turns(
    pieces: AsyncIterable[T], clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[T]:
    """Yield pieces; between them, the event loop's other work has its turn."""
    began = clock()
    async for piece in pieces:
        yield piece
        if clock() - began > _TURN_S:
            await asyncio.sleep(0)
            began = clock()
