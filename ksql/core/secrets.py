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
    r"password|passwd|passphrase|secret|token|credential|jaas|user\.info"
    r"|(?:api|access|private|account|master|shared|encryption|signing)[._-]?key\b"
    r"|ssl\.(?:keystore\.key|key\.pem)",
    re.IGNORECASE,
)
_SCHEME: Final = "://"
_URL: Final = re.compile(r"[^\s,'\"<>]++")
_PARAMETER: Final = re.compile(r"[?&;][^=&;\s]*+=?")
_SECRET_PARAMETER: Final = re.compile(
    r"password|passwd|secret|token|credential|(?:api|access)[._-]?key", re.IGNORECASE
)
_ORACLE: Final = re.compile(
    r"(jdbc:oracle:\w{1,9}:)[^\s/@,'\"]{1,128}+/[^\s@]{1,256}+@", re.IGNORECASE
)
_VALUE: Final = re.compile(r"[^&;\s,'\"]*+")
_ASSIGNED: Final = re.compile(
    r"""((?:password|passwd|passphrase|secret|user\.info)["']?+\s{0,9}+[=:]\s{0,9}+)"""
    r"""(?:"[^"]++"?|'[^']++'?|[^\s"',;&]++)""",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """Return whether the value of that name is for nobody to see."""
    return _NAMES.search(name) is not None


def hidden_if_secret(name: str, value: str) -> str:
    """Return the value of a property as it may be shown."""
    return HIDDEN if is_secret(name) else without_secrets(value)


def without_secrets(text: str) -> str:
    """Return a text with the users, passwords and secret parameters of its URLs hidden.

    What is assigned to a name that ends like one of a password is hidden, too, as in a line of
    JAAS. It takes time in proportion to the text, whatever that is: logs have texts of strangers.
    """
    if _SCHEME in text:
        text = _without_parameters(_URL.sub(lambda url: _without_user(url[0]), text))
    text = _ORACLE.sub(rf"\1{HIDDEN}@", text)
    return _ASSIGNED.sub(rf"\1{HIDDEN}", text)


def _without_user(url: str) -> str:
    """Hide all up to the last ``@``: a password may hold ``@`` and ``/`` though it should not."""
    before, scheme, rest = url.partition(_SCHEME)
    _, at, place = rest.rpartition("@")
    return f"{before}{scheme}{HIDDEN}@{place}" if at else url


def _without_parameters(text: str) -> str:
    parts, done = [], 0
    for name in _PARAMETER.finditer(text):
        is_value = name.start() < done
        if is_value or not name[0].endswith("=") or not _SECRET_PARAMETER.search(name[0]):
            continue
        parts += [text[done : name.end()], HIDDEN]
        value = _VALUE.match(text, name.end())
        done = value.end() if value else name.end()
    return "".join(parts) + text[done:]


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
