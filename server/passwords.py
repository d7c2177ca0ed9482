"""The forms of passwords in a file of users: as they are, Jetty's digest, or hashed with scrypt.

``ksql password`` prints the line's part for a password that it asks for.
Source: RFC 7914, scrypt; OWASP's recommendation of its costs.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import getpass
import hashlib
import hmac
import os
import re
import sys
from collections.abc import Sequence
from typing import Final

MD5: Final = "MD5:"
SCRYPT: Final = "SCRYPT:"
_DIGEST: Final = re.compile(r"[0-9a-fA-F]{32}")
_COST: Final = (2**14, 8, 5)  # n, r, p: 16 MiB and about a fifth of a second
_LARGEST_COST: Final = 2**24  # n times r times p: a file must not stop the server
_SALT_BYTES: Final = 16
_KEY_BYTES: Final = 32
_OTHER_HASHES: Final = ("OBF:", "CRYPT:", "$2", "$argon2")


def hashed(password: str, salt: bytes | None = None) -> str:
    """Return a password's entry in a file of users."""
    salt = os.urandom(_SALT_BYTES) if salt is None else salt
    n, r, p = _COST
    parts = (str(n), str(r), str(p), _text(salt), _text(_key(password, salt, _COST)))
    return SCRYPT + ":".join(parts)


def is_readable(stored: str) -> bool:
    """Return whether a file's password is of a form that this server knows."""
    if stored.startswith(MD5):
        return _DIGEST.fullmatch(stored, len(MD5)) is not None
    if stored.startswith(SCRYPT):
        return _parts(stored) is not None
    return bool(stored) and not stored.startswith(_OTHER_HASHES)


def is_slow(stored: str) -> bool:
    """Return whether to compare takes time on purpose."""
    return stored.startswith(SCRYPT)


def matches(password: str, stored: str) -> bool:
    """Return whether that is the password, in the same time for all that are not."""
    given = password.encode()
    if stored.startswith(MD5):
        digest = hashlib.md5(given, usedforsecurity=False).hexdigest()
        return hmac.compare_digest(digest, stored.removeprefix(MD5).lower())
    if stored.startswith(SCRYPT):
        parts = _parts(stored)
        if parts is None:
            return False
        cost, salt, key = parts
        return hmac.compare_digest(_key(password, salt, cost), key)
    return hmac.compare_digest(given, stored.encode())


def _key(password: str, salt: bytes, cost: tuple[int, int, int]) -> bytes:
    n, r, p = cost
    memory = 128 * r * (n + p) * 2
    return hashlib.scrypt(
        password.encode(), salt=salt, n=n, r=r, p=p, maxmem=memory, dklen=_KEY_BYTES
    )


def _parts(stored: str) -> tuple[tuple[int, int, int], bytes, bytes] | None:
    parts = stored.removeprefix(SCRYPT).split(":")
    if len(parts) != len(_COST) + 2 or not all(number.isdecimal() for number in parts[:3]):
        return None
    n, r, p = (int(number[:9]) for number in parts[:3])
    if n < 2 or n & (n - 1) or not 0 < r * p * n <= _LARGEST_COST:
        return None
    try:
        salt, key = (base64.b64decode(part, validate=True) for part in parts[3:])
    except binascii.Error:
        return None
    return ((n, r, p), salt, key) if len(key) == _KEY_BYTES else None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def main(argv: Sequence[str]) -> int:
    """Ask for a password, or read it from standard input, and print what stands for it."""
    described = argparse.ArgumentParser(
        prog="ksql password", description="Print a password's entry in a file of users."
    )
    described.parse_args(argv)
    if sys.stdin.isatty():
        password = getpass.getpass("Password: ")
        if getpass.getpass("Again: ") != password:
            sys.stderr.write("error: the two are not the same\n")
            return 1
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        sys.stderr.write("error: the password is empty\n")
        return 1
    sys.stdout.write(hashed(password) + "\n")
    return 0
