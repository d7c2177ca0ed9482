"""The partition that Kafka's clients choose for a key: its bytes' murmur2, many keys at once.

Keys of as many whole words are hashed together, a column of words after the other.
Source: ``org.apache.kafka.common.utils.Utils.murmur2`` and its ``toPositive``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_WORD: Final = 4
_SEED: Final = np.uint32(0x9747B28C)
_M: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)


def partitions_of(keys: Sequence[bytes], count: int) -> list[int]:
    """Return the partition of each key among so many."""
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    words = lengths // _WORD
    hashed = np.empty(len(keys), np.uint32)
    for number in np.unique(words):
        places = np.flatnonzero(words == number)
        some = keys if len(places) == len(keys) else [keys[place] for place in places.tolist()]
        hashed[places] = _hashed(some, lengths[places], int(number))
    found: list[int] = ((hashed & _POSITIVE).astype(np.int64) % count).tolist()
    return found


def _hashed(keys: Sequence[bytes], lengths: NDArray[np.int64], words: int) -> NDArray[np.uint32]:
    """Return the hashes of keys that have so many whole words, and perhaps a part of one more."""
    width = (words + 1) * _WORD
    data = b"".join([key.ljust(width, b"\0") for key in keys])
    table = np.frombuffer(data, "<u4").reshape(len(keys), words + 1)
    found = _SEED ^ lengths.astype(np.uint32)
    for column in range(words):
        word = table[:, column] * _M
        word ^= word >> np.uint32(24)
        found = (found * _M) ^ (word * _M)
    found = np.where(lengths % _WORD > 0, (found ^ table[:, words]) * _M, found)
    found ^= found >> np.uint32(13)
    found *= _M
    return found ^ (found >> np.uint32(15))
