"""Secrets by file: neither a command line nor a list of properties shows them.

A container gets a secret as a file, such as ``/run/secrets/postgres_password``.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.base.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping

LEDGER_PASSWORD: Final = "ksql.ledger.password.file"  # noqa: S105 - a property's name
SPARK_SECRET: Final = "spark.authenticate.secret"  # noqa: S105 - a property's name
SPARK_SECRET_FILE: Final = f"{SPARK_SECRET}.file"


class BadSecretFile(StartError):
    """A file that is to hold a secret, and does not."""

    def __init__(self, name: str, path: str, why: str) -> None:
        super().__init__(
            f"{name}: the file {path} {why}",
            hint="Write the secret into it as its only line, and let the service's user read it.",
        )


def password(name: str, path: str) -> str:
    """Return the one line of a file, without the newline at its end.

    Raises: BadSecretFile.
    """
    try:
        text = _bytes(name, path).decode().rstrip("\n")
    except UnicodeDecodeError as error:
        raise BadSecretFile(name, path, "is no UTF-8 text") from error
    if not text or "\n" in text:
        raise BadSecretFile(name, path, "does not hold exactly one line")
    return text


def spark_conf(given: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's properties with the secret itself where they name its file.

    Masters and workers read the file themselves, but a driver takes the secret only by value. It is
    the Base64 of the file's bytes, as they have it.

    Raises: BadSecretFile.
    Source: Spark's Security page, on spark.authenticate.secret.file; SecurityManager.getSecretKey.
    """
    path = given.get(SPARK_SECRET_FILE, "")
    if not path or SPARK_SECRET in given:
        return dict(given)
    secret = base64.b64encode(_bytes(SPARK_SECRET_FILE, path)).decode()
    if not secret:
        raise BadSecretFile(SPARK_SECRET_FILE, path, "is empty")
    return {name: value for name, value in given.items() if name != SPARK_SECRET_FILE} | {
        SPARK_SECRET: secret
    }


def _bytes(name: str, path: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise BadSecretFile(name, path, why) from error
