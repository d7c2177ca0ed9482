"""The partition that Kafka's clients choose for a key: its bytes' murmur2, many keys at once.

All keys lie in one buffer, of which a word at any byte can be read. Each round takes the next word
of all keys that have one. This costs less than to remember what a key's partition was.
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
_FIRST_BYTES: Final = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)
"""Masks of a word of which so many bytes count."""
_TEXT_HEADS: Final = np.full(256, 2, np.int64)
_TEXT_HEADS[[0xD9, 0xDA, 0xDB]] = 3, 4, 6
"""How many bytes go before a text in the packed key that consists of it, by the second byte."""


def partitions_of(keys: Sequence[bytes], count: int) -> list[int]:
    """Return the partition of each key among so many."""
    return _partitions(keys, count, None)


def partitions_of_texts(packed: Sequence[bytes], count: int) -> list[int]:
    """Return the partition of each packed key that is one text, which is written as it is."""
    return _partitions(packed, count, _TEXT_HEADS)


def _partitions(keys: Sequence[bytes], count: int, heads: NDArray[np.int64] | None) -> list[int]:
    if not keys:
        return []
    data = b"".join(keys) + bytes(_WORD)
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    starts = np.cumsum(lengths) - lengths
    if heads is not None:
        skipped = heads[np.frombuffer(data, np.uint8)[starts + 1]]
        starts += skipped
        lengths -= skipped
    hashed = _hashed(data, starts, lengths) & _POSITIVE
    partitions: list[int] = (hashed.astype(np.int64) % count).tolist()
    return partitions


def _hashed(
    data: bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Return the hashes of keys that lie in ``data``; ``starts`` is used up."""
    words_at = np.ndarray((len(data) - _WORD + 1,), "<u4", data, strides=(1,))
    words = lengths // _WORD
    fewest, most = int(words.min()), int(words.max())
    hashed = _SEED ^ lengths.astype(np.uint32)
    for _ in range(fewest):
        hashed = (hashed * _M) ^ _mixed(words_at[starts])
        starts += _WORD
    for number in range(fewest, most):
        longer = np.flatnonzero(words > number)
        hashed[longer] = (hashed[longer] * _M) ^ _mixed(words_at[starts[longer]])
        starts[longer] += _WORD
    rest = lengths % _WORD
    last = words_at[starts] & _FIRST_BYTES[rest]
    hashed = np.where(rest > 0, (hashed ^ last) * _M, hashed)
    hashed ^= hashed >> np.uint32(13)
    hashed *= _M
    return hashed ^ (hashed >> np.uint32(15))


def _mixed(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    words = words * _M
    words ^= words >> np.uint32(24)
    return words * _M
