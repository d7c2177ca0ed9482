"""The short-lived process in which Spark learns the state's schema at the start of a query.

Spark asks each stateful operator, once per start and before the first batch, for its state
variables. It starts a Python process, which loads PySpark and the operator with all that it names,
and waits for it. That is most of a start's time. But our operators have one state variable, the
same for every stage of every query (``host``): this script gives its name and schema at once. It is
run without the packages that are installed (``-I -S``) and imports as little as it can.

Source: PySpark's ``transform_with_state_driver_worker`` and ``StateMessage.proto``, 4.2.
"""

from __future__ import annotations

import io  # noqa: TC003 - it is there, and the module typing would have to be loaded
import os
import socket
import struct
import sys

MODULE = "pyspark.sql.streaming.transform_with_state_driver_worker"
"""What Spark asks Python to run for it."""

STATE_NAME = "pages"
KEY_COLUMN = "K"
VALUE_COLUMN = "V"

_INT = struct.Struct("!i")
_PATH_FOLLOWS = -1
_LENGTH_DELIMITED = 2
_SHORT = 0x80
# numbers of fields in StateMessage.proto
_CALL, _SET_STATE, _GET_MAP = 2, 1, 4
_NAME, _KEY_SCHEMA, _VALUE_SCHEMA = 1, 2, 3


class SchemaRefused(Exception):
    """Spark does not take the answer; its own reason is in the text."""


def messages() -> tuple[bytes, bytes]:
    """Return what Spark gets to know: that this is the look before the start, and the variable."""
    first = _field(_CALL, _field(_SET_STATE, b""))  # PRE_INIT is 0, which is not written
    command = (
        _field(_NAME, STATE_NAME.encode())
        + _field(_KEY_SCHEMA, _schema(KEY_COLUMN))
        + _field(_VALUE_SCHEMA, _schema(VALUE_COLUMN))
    )
    return first, _field(_CALL, _field(_GET_MAP, command))


def _schema(column: str) -> bytes:
    """Return the schema of a structure with one column of bytes, as Spark writes it."""
    return (
        f'{{"fields":[{{"metadata":{{}},"name":"{column}","nullable":true,"type":"binary"}}],'
        '"type":"struct"}'
    ).encode()


def _field(number: int, content: bytes) -> bytes:
    """Return a field in Protocol Buffers' encoding: bytes or a message, after its length."""
    length, size = bytearray(), len(content)
    while size >= _SHORT:
        length.append(size & (_SHORT - 1) | _SHORT)
        size >>= 7
    length.append(size)
    return bytes([number << 3 | _LENGTH_DELIMITED]) + bytes(length) + content


def main() -> None:
    """Answer Spark, which has started this process.

    Raises: SchemaRefused, OSError.
    """
    spark = _to_spark()
    _write(spark, _INT.pack(os.getpid()))
    _check_version(_text(spark))
    _bytes(spark)  # the operator, pickled
    _write(spark, _INT.pack(0))
    port = _int(spark)
    address: str | int = _text(spark) if port == _PATH_FOLLOWS else port
    _bytes(spark)  # the schema of the grouping key
    state = _connected(address)
    for message in messages():
        _write(state, _INT.pack(0) + _INT.pack(len(message)) + message)
        if answer := _bytes(state):  # an answer without an error is empty
            raise SchemaRefused(repr(answer))
    _write(spark, _INT.pack(0))
    spark.close()


def _to_spark() -> io.BufferedRWPair:
    env = os.environ
    path = env.get("PYTHON_WORKER_FACTORY_SOCK_PATH")
    if path is not None:
        return _connected(path)
    spark = _connected(int(env["PYTHON_WORKER_FACTORY_PORT"]))
    secret = env["PYTHON_WORKER_FACTORY_SECRET"].encode()
    _write(spark, _INT.pack(len(secret)) + secret)
    if (answer := _text(spark)) != "ok":
        raise SchemaRefused(answer)
    return spark


def _connected(address: str | int) -> io.BufferedRWPair:
    if isinstance(address, str):
        there = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        there.connect(address)
    else:
        there = socket.create_connection(("127.0.0.1", address))
        there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return there.makefile("rwb")


def _check_version(expected: str) -> None:
    actual = f"{sys.version_info.major}.{sys.version_info.minor}"
    if expected != actual:
        raise SchemaRefused(f"Python {expected} is expected, this is {actual}")


def _write(file: io.BufferedRWPair, content: bytes) -> None:
    file.write(content)
    file.flush()


def _int(file: io.BufferedRWPair) -> int:
    packed = file.read(_INT.size)
    if len(packed) < _INT.size:
        raise SchemaRefused("Spark hung up")
    number: int = _INT.unpack(packed)[0]
    return number


def _bytes(file: io.BufferedRWPair) -> bytes:
    return file.read(_int(file))


def _text(file: io.BufferedRWPair) -> str:
    return _bytes(file).decode()


if __name__ == "__main__":
    main()
