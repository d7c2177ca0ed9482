"""Users and their passwords, from the files that ksqlDB reads; SIGHUP reads them again.

A JAAS file has an entry that names Jetty's login module and its file of users; a line of that is
``user: password,role,role``. ``server.passwords`` has the forms of passwords. The files are read
again when they have changed, so a user who was removed is refused. Source: ksqlDB security
reference, HTTP basic authentication; Jetty's PropertyFileLoginModule.

On SIGHUP users and certificates are read again. It never ends the server.

Before the server is up there is nothing to read again: what it opens then is as the files are.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import signal
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from ksql.control.access import ALL, NONE, Grants
from ksql.core import KsqlError, StartError, WatchedFiles
from ksql.http import Renewable
from server.passwords import is_readable, is_slow, matches
from server.propertiesfile import parse_properties
from server.rightsfile import RIGHTS, Rights, RightsAlone, rights_file

if TYPE_CHECKING:
    from ksql.core import Settings

Accounts = Mapping[str, tuple[str, frozenset[str]]]
"""Password and roles of each user."""


def ignore_hangups() -> None:
    """Have SIGHUP do nothing, also while modules are loaded."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


class FileRenewal:
    """Reads again what a server has read from files of its operator."""

    def __init__(
        self, users: Users | None, contexts: Callable[[], Iterable[object]] = tuple
    ) -> None:
        """Take ``contexts``, which gives the sides of TLS that there are at the moment."""
        self._users = users
        self._contexts = contexts

    def __call__(self) -> None:
        """Read all again; what cannot be used leaves what there was, and is logged with why."""
        if self._users is not None:
            self._users.read_again()
        for context in self._contexts():
            if isinstance(context, Renewable):
                _renew(context)
        log.warning("read_again", extra={"what": "users and certificates"})


def _renew(context: Renewable) -> None:
    try:
        context.renew()
    except KsqlError as error:
        log.error("certificates_not_read", extra={"reason": error.text()})


METHOD: Final = "authentication.method"
REALM: Final = "authentication.realm"
ROLES: Final = "authentication.roles"
AUDIT: Final = "ksql.audit"
CLIENTS: Final = "ssl.client.authentication"
SKIPPED: Final = "authentication.skip.paths"
JAAS: Final = "java.security.auth.login.config"
OPEN_PATHS: Final = ("/v1/metadata", "/v1/metadata/id", "/healthcheck", "/livez", "/readyz")
EVERY: Final = "*"
_MODULE: Final = "PropertyFileLoginModule"
_ENTRY: Final = re.compile(r"([\w.-]+)\s*\{([^}]*)\}\s*;")
_FILE: Final = re.compile(r"""\bfile\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;]+))""")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_MOST_KNOWN: Final = 1_000

log = logging.getLogger(__name__)


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


def users_files(
    jaas: str, realm: str, clock: Callable[[], float] = time.monotonic
) -> WatchedFiles[Accounts]:
    """Read the JAAS file and the file of users, which are read again.

    Raises: BadUsers.
    """

    def read(see: Callable[[str], None]) -> Accounts:
        see(jaas)
        path = _users_file(_text(jaas), jaas, realm)
        see(path)
        return _users(path)

    return WatchedFiles("users", read, clock, counts=lambda accounts: {"users": len(accounts)})


class _Known:
    """Passwords that were right a moment ago, so that not each request takes a hash's time.

    They are kept as digests under a key that no one else has.
    """

    def __init__(self) -> None:
        self._key = os.urandom(32)
        self._right: OrderedDict[bytes, None] = OrderedDict()

    def has(self, password: str, stored: str) -> bool:
        return self._digest(password, stored) in self._right

    def add(self, password: str, stored: str) -> None:
        self._right[self._digest(password, stored)] = None
        while len(self._right) > _MOST_KNOWN:
            self._right.popitem(last=False)

    def _digest(self, password: str, stored: str) -> bytes:
        text = f"{len(stored)}:{stored}{password}".encode()
        return hmac.digest(self._key, text, hashlib.sha256)


@dataclass(frozen=True)
class Users:
    """The users of the server; ``users`` has password and roles of each, if no ``files`` have.

    Without ``rights`` a user may do everything.
    """

    realm: str
    users: Accounts
    roles: frozenset[str] = frozenset([EVERY])
    open_paths: tuple[str, ...] = field(default=OPEN_PATHS)
    files: WatchedFiles[Accounts] | None = None
    rights: WatchedFiles[Rights] | None = None
    _known: _Known = field(default_factory=_Known)

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """Read the settings; None if nobody is asked.

        Raises: BadUsers, BadRights, RightsAlone.
        """
        if settings.text(METHOD).lower() != "basic":
            return cls._by_certificates(settings) if settings.text(RIGHTS) else None
        realm, jaas = settings.text(REALM), settings.text(JAAS)
        if not realm or not jaas:
            raise BadUsers(
                f"{METHOD}=BASIC needs {REALM} and {JAAS}",
                hint=f"Example: {REALM}=KsqlServer-Props, {JAAS}=/etc/ksql/jaas.conf",
            )
        files = users_files(jaas, realm)
        path = settings.text(RIGHTS)
        rights = rights_file(path, files.current) if path else None
        paths, roles = (*OPEN_PATHS, *settings.parts(SKIPPED)), frozenset(settings.parts(ROLES))
        return cls(realm, files.current(), roles, paths, files, rights)

    @classmethod
    def _by_certificates(cls, settings: Settings) -> Self:
        """Return users who have certificates and no passwords.

        Raises: BadRights, RightsAlone.
        """
        rights = rights_file(settings.text(RIGHTS), tuple)
        if not rights.current().certificates or settings.text(CLIENTS).lower() == "none":
            raise RightsAlone
        paths, roles = (*OPEN_PATHS, *settings.parts(SKIPPED)), frozenset(settings.parts(ROLES))
        return cls("", {}, roles, paths, rights=rights)

    def read_again(self) -> None:
        """Read the files now; one that cannot be used leaves users and rights as they are."""
        if self.files is not None:
            self.files.read_again()
        if self.rights is not None:
            self.rights.read_again()

    def certified(self, subject: str) -> str:
        """Return the user whose certificate has that subject; empty if it is nobody's."""
        return "" if self.rights is None else self.rights.current().user_of(subject)

    def admits(self, name: str) -> bool:
        """Return whether that user, who is known to be it, has a role that is let in."""
        return EVERY in self.roles or bool(self._roles(name) & self.roles)

    def grants(self, name: str) -> Grants:
        """Return what that user may do; everything if no file of rights says anything else."""
        if self.rights is None:
            return ALL
        return self.rights.current().grants(name, self._roles(name))

    def renewed(self, name: str) -> Grants:
        """Return what a user may do who has signed in before; nothing once it is none any more."""
        certified = self.rights is not None and name in self.rights.current().users
        known = certified or name in self._accounts()
        return self.grants(name) if known and self.admits(name) else NONE

    def _roles(self, name: str) -> frozenset[str]:
        account = self._accounts().get(name)
        of_file = frozenset() if account is None else account[1]
        if self.rights is None:
            return of_file
        return of_file | self.rights.current().roles.get(name, frozenset())

    def is_open(self, path: str) -> bool:
        """Return whether the path is answered without a user."""
        return any(
            path.startswith(pattern[:-1]) if pattern.endswith(EVERY) else path == pattern
            for pattern in self.open_paths
        )

    def refusal(self, name: str, password: str) -> KsqlError | None:
        """Return why that user is not let in; None if it is. See ``takes_long``."""
        accounts = self._accounts()
        expected, _ = accounts.get(name) or _stranger(accounts)
        right = self._known.has(password, expected) or matches(password, expected)
        if not right or name not in accounts:
            return Unauthorized()
        if is_slow(expected):
            self._known.add(password, expected)
        return None if self.admits(name) else Forbidden()

    def takes_long(self, name: str, password: str) -> bool:
        """Return whether to answer takes the time of a hash: it is for a thread.

        An unknown name takes as long where names have hashes: else it would be noticed.
        """
        accounts = self._accounts()
        expected, _ = accounts.get(name) or _stranger(accounts)
        return is_slow(expected) and not self._known.has(password, expected)

    def _accounts(self) -> Accounts:
        return self.users if self.files is None else self.files.current()


def _stranger(accounts: Accounts) -> tuple[str, frozenset[str]]:
    """Return what the password of an unknown name is compared with: it takes the same time."""
    slow = (stored for stored, _ in accounts.values() if is_slow(stored))
    return next(slow, ""), frozenset()


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
    users = {}
    for name, line in parse_properties(_text(path)).items():
        password, *roles = (part.strip() for part in line.split(","))
        if not is_readable(password):
            raise BadUsers(
                f"the password of {name} in {path} cannot be read",
                hint="Write what `ksql password` prints, the password itself, or MD5: and its "
                "digest in hexadecimal.",
            )
        users[name] = (password, frozenset(roles))
    if not users:
        raise BadUsers(f"the file {path} names no users")
    return users


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadUsers(f"the file {path} is not UTF-8 text") from error
    except OSError as error:
        raise BadUsers(f"cannot read {path}: {error.strerror or error}") from error
