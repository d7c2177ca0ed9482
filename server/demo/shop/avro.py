"""Orders as an AVRO producer writes them, by code that the service does not share.

Source: Apache Avro 1.12, "Binary Encoding"; Confluent's wire format.
"""

from __future__ import annotations

import json
import struct

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "PlacedOrder",
        "namespace": "shop",
        "fields": [
            {"name": "customer_id", "type": ["null", "string"], "default": None},
            {"name": "product_id", "type": "string"},
            {"name": "quantity", "type": "int"},
            {
                "name": "amount",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            },
        ],
    }
)
_NULL, _STRING = b"\x00", b"\x02"  # branches 0 and 1 of the union
_PREFIX = struct.Struct(">bI")  # zero byte and the schema's id


def order(
    schema_id: int, customer_id: str | None, product_id: str, quantity: int, cents: int
) -> bytes:
    """Return an order's value, in the form of ``SCHEMA``."""
    customer = _NULL if customer_id is None else _STRING + _text(customer_id)
    body = customer + _text(product_id) + number(quantity) + _decimal(cents)
    return _PREFIX.pack(0, schema_id) + body


def number(value: int) -> bytes:
    """Return an int or a long: zigzag, then seven bits a byte, the lowest first."""
    left = value << 1 if value >= 0 else (-value << 1) - 1
    encoded = bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)


def _text(value: str) -> bytes:
    return _counted(value.encode())


def _decimal(unscaled: int) -> bytes:
    """Return a decimal's bytes: the unscaled number in two's complement, big endian."""
    return _counted(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True))


def _counted(content: bytes) -> bytes:
    return number(len(content)) + content
