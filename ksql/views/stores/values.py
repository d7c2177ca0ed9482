"""The bytes of a stored value: format, timestamp, payload.

One byte says the format, so that values of two formats can lie in one store while it is being
upgraded. In format 1 the record's timestamp (8 bytes, big-endian, signed, milliseconds) and the
payload as it came from the topic follow.

Source: KIP-258.
"""

from __future__ import annotations

import struct

from ksql.views.stores.base import NewerStore, Stored

VALUE_FORMAT = 1

_HEAD = struct.Struct(">Bq")
_HEAD_BYTES = _HEAD.size


def pack(value: bytes, timestamp: int) -> bytes:
    """Return the payload with its timestamp, in the newest format."""
    return _HEAD.pack(VALUE_FORMAT, timestamp) + value


def unpack(data: bytes) -> Stored:
    """Return the payload and its timestamp.

    Raises: NewerStore for a format that this version does not know, ValueError for damage.
    """
    try:
        version, timestamp = _HEAD.unpack_from(data)
    except struct.error as error:
        raise ValueError(f"a stored value has {len(data)} bytes only") from error
    if version != VALUE_FORMAT:
        if version == 0:
            raise ValueError("a stored value has format 0, which was never written")
        raise NewerStore("a stored value", version, VALUE_FORMAT)
    return Stored(data[_HEAD_BYTES:], timestamp)
