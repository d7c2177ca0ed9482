"""Hides secrets: which properties are secret, texts without passwords, secrets read from files.

Neither a command line nor a list of properties shows a secret that is read from a file.

A container gets a secret as a file, such as ``/run/secrets/postgres_password``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ksql.core.errors import StartError

HIDDEN: Final = "***"
_NAMES: Final = re.compile(
    r"password|passwd|passphrase|secret|token|credential|jaas|user\.info", re.IGNORECASE
)
_USER_INFO: Final = re.compile(r"(?<=://)[^\s,'\"<>]*@")
"""Up to the last ``@`` of the URL: a password may hold ``@`` and ``/`` though it should not."""
_PARAMETERS: Final = re.compile(
    r"([?&;][^=&;\s]*(?:password|passwd|secret|token|credential)[^=&;\s]*=)[^&;\s,'\"]*",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """Return whether the value of that name is for nobody to see."""
    return _NAMES.search(name) is not None


def without_secrets(text: str) -> str:
    """Return a text with the users, passwords and secret parameters of its URLs hidden."""
    if "://" not in text:
        return text
    return _PARAMETERS.sub(rf"\1{HIDDEN}", _USER_INFO.sub(f"{HIDDEN}@", text))


LEDGER_PASSWORD: Final = "ksql.ledger.password.file"  # noqa: S105 - a property's name


class BadSecretFile(StartError):
    """A file that should hold a secret, and does not."""

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
        text = Path(path).expanduser().read_text(encoding="utf-8").rstrip("\n")
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise BadSecretFile(name, path, why) from error
    except UnicodeDecodeError as error:
        raise BadSecretFile(name, path, "is no UTF-8 text") from error
    if not text or "\n" in text:
        raise BadSecretFile(name, path, "does not hold exactly one line")
    return text
