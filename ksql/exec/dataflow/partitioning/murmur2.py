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
_HEAD_BYTES: Final = 2
_INTEGER_SHIFTS: Final = np.zeros(256, np.int64)
_INTEGER_SHIFTS[[0xCC, 0xD0, 0xCD, 0xD1, 0xCE, 0xD2]] = 56, 56, 48, 48, 32, 32
"""How many bits after a whole number do not belong to it, in a word of eight bytes that begins
with it, by the byte before."""


def partitions_of(keys: Sequence[bytes], count: int) -> list[int]:
    """Return the partition of each key among so many."""
    return _partitions(keys, count, None).tolist()  # type: ignore[no-any-return] # of integers


def partitions_of_texts(packed: Sequence[bytes], count: int) -> NDArray[np.int64]:
    """Return the partition of each packed key that is one text, which is written as it is."""
    return _partitions(packed, count, _TEXT_HEADS)


def partitions_of_integers(packed: Sequence[bytes], count: int, size: int) -> NDArray[np.int64]:
    """Return the partition of each packed key that is a whole number or NULL.

    It is written in 4 or 8 bytes (``size``), the highest first.
    """
    if not packed:
        return np.empty(0, np.int64)
    data, starts, lengths = _in_one(packed, spare=8)
    heads = np.frombuffer(data, np.uint8)[starts + 1]
    follows = np.ndarray((len(data) - 7,), ">u8", data, strides=(1,))[starts + _HEAD_BYTES]
    bits, shifts = follows.astype(np.uint64), _INTEGER_SHIFTS[heads]
    unsigned = (bits >> shifts.astype(np.uint64)).astype(np.int64)
    signed = bits.astype(np.int64) >> shifts
    small = heads.view(np.int8).astype(np.int64)  # the head itself
    numbers = np.where(lengths == _HEAD_BYTES, small, np.where(heads < 0xD0, unsigned, signed))
    written = numbers.astype(f">i{size}").view("<u4").reshape(len(packed), size // _WORD)
    hashed = np.full(len(packed), _SEED ^ np.uint32(size), np.uint32)
    for column in range(size // _WORD):
        hashed = (hashed * _M) ^ _mixed(written[:, column])
    return _numbered(hashed, count)


def _partitions(
    keys: Sequence[bytes], count: int, heads: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    if not keys:
        return np.empty(0, np.int64)
    data, starts, lengths = _in_one(keys, spare=_WORD)
    if heads is not None:
        skipped = heads[np.frombuffer(data, np.uint8)[starts + 1]]
        starts += skipped
        lengths -= skipped
    return _numbered(_hashed(data, starts, lengths), count)


def _in_one(
    keys: Sequence[bytes], *, spare: int
) -> tuple[bytes, NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys in one buffer, with their starts and lengths; so many bytes are after it."""
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    return b"".join(keys) + bytes(spare), np.cumsum(lengths) - lengths, lengths


def _numbered(hashed: NDArray[np.uint32], count: int) -> NDArray[np.int64]:
    """Return the partitions of keys with hashes to which the last step is still to be done."""
    hashed ^= hashed >> np.uint32(13)
    hashed *= _M
    hashed ^= hashed >> np.uint32(15)
    partitions: NDArray[np.int64] = (hashed & _POSITIVE).astype(np.int64) % count
    return partitions


def _hashed(
    data: bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Return the hashes of keys that lie in ``data``, but for the last step.

    ``starts`` is used up.
    """
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
    return np.where(rest > 0, (hashed ^ last) * _M, hashed)


def _mixed(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    words = words * _M
    words ^= words >> np.uint32(24)
    return words * _M
