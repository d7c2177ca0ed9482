"""Users and their passwords, from the files that ksqlDB reads.

A JAAS file has an entry that names Jetty's login module and its file of users; a line of that is
``user: password,role,role``. A password stands there as it is, or as ``MD5:`` and its digest.
Source: ksqlDB security reference, HTTP basic authentication; Jetty's PropertyFileLoginModule.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from ksql.base.errors import KsqlError, StartError
from server.settings import parse_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.base.config import Settings

METHOD: Final = "authentication.method"
REALM: Final = "authentication.realm"
ROLES: Final = "authentication.roles"
SKIPPED: Final = "authentication.skip.paths"
JAAS: Final = "java.security.auth.login.config"
OPEN_PATHS: Final = ("/v1/metadata", "/v1/metadata/id", "/healthcheck")
EVERY: Final = "*"
_MODULE: Final = "PropertyFileLoginModule"
_ENTRY: Final = re.compile(r"([\w.-]+)\s*\{([^}]*)\}\s*;")
_FILE: Final = re.compile(r"""\bfile\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;]+))""")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_MD5: Final = "MD5:"
_DIGEST: Final = re.compile(r"[0-9a-fA-F]{32}")
_OTHER_HASHES: Final = ("OBF:", "CRYPT:")


class BadUsers(StartError):
    """Users are asked for, and who they are cannot be found out."""


class Unauthorized(KsqlError):
    """A request without a user and its password."""

    code = 40100

    def __init__(self) -> None:
        super().__init__("Unauthorized")


class Forbidden(KsqlError):
    """A user who has none of the roles that are let in."""

    code = 40300

    def __init__(self) -> None:
        super().__init__("Forbidden")


@dataclass(frozen=True)
class Users:
    """The users of the server; ``users`` has password and roles of each."""

    realm: str
    users: Mapping[str, tuple[str, frozenset[str]]]
    roles: frozenset[str] = frozenset([EVERY])
    open_paths: tuple[str, ...] = field(default=OPEN_PATHS)

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """Read the settings; None if nobody is asked.

        Raises: BadUsers.
        """
        if settings.text(METHOD).lower() != "basic":
            return None
        realm, jaas = settings.text(REALM), settings.text(JAAS)
        if not realm or not jaas:
            raise BadUsers(
                f"{METHOD}=BASIC needs {REALM} and {JAAS}",
                hint=f"Example: {REALM}=KsqlServer-Props, {JAAS}=/etc/ksql/jaas.conf",
            )
        users = _users(_users_file(_text(jaas), jaas, realm))
        paths = (*OPEN_PATHS, *settings.parts(SKIPPED))
        return cls(realm, users, frozenset(settings.parts(ROLES)), paths)

    def is_open(self, path: str) -> bool:
        """Return whether the path is answered without a user."""
        return any(
            path.startswith(each[:-1]) if each.endswith(EVERY) else path == each
            for each in self.open_paths
        )

    def refusal(self, name: str, password: str) -> KsqlError | None:
        """Return why that user is not let in; None if it is."""
        expected, roles = self.users.get(name, ("", frozenset[str]()))
        if not _matches(password, expected) or name not in self.users:
            return Unauthorized()
        if EVERY in self.roles or roles & self.roles:
            return None
        return Forbidden()


def _matches(password: str, expected: str) -> bool:
    given = password.encode()
    if expected.startswith(_MD5):
        digest = hashlib.md5(given, usedforsecurity=False).hexdigest()
        return hmac.compare_digest(digest, expected.removeprefix(_MD5).lower())
    return hmac.compare_digest(given, expected.encode())


def _users_file(text: str, path: str, realm: str) -> str:
    """Return the file of users that an entry of a JAAS file names."""
    entries = dict(_ENTRY.findall(_COMMENT.sub("", text)))
    if realm not in entries:
        raise BadUsers(f"the JAAS file {path} has no entry {realm}")
    named = _FILE.search(entries[realm])
    if _MODULE not in entries[realm] or named is None:
        raise BadUsers(
            f"the entry {realm} of {path} does not name a file of users",
            hint=f'Example: org.eclipse.jetty.jaas.spi.{_MODULE} required file="/etc/ksql/users";',
        )
    return next(part for part in named.groups() if part is not None)


def _users(path: str) -> dict[str, tuple[str, frozenset[str]]]:
    found = {}
    for name, line in parse_properties(_text(path)).items():
        password, *roles = (part.strip() for part in line.split(","))
        if not password or password.startswith(_OTHER_HASHES) or _is_no_digest(password):
            raise BadUsers(
                f"the password of {name} in {path} cannot be read",
                hint=f"Write it as it is, or as {_MD5} and its digest in hexadecimal.",
            )
        found[name] = (password, frozenset(roles))
    if not found:
        raise BadUsers(f"the file {path} names no users")
    return found


def _is_no_digest(password: str) -> bool:
    return password.startswith(_MD5) and _DIGEST.fullmatch(password, len(_MD5)) is None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadUsers(f"the file {path} is not UTF-8 text") from error
    except OSError as error:
        raise BadUsers(f"cannot read {path}: {error.strerror or error}") from error
