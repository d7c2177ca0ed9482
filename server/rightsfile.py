"""The file of rights: what roles may do, which roles users have, whose certificates are whose.

A line is ``role NAME may RIGHT on PATTERN, ..``, ``user NAME is ROLE, ..`` or ``certificate SUBJECT
is USER``; ``#`` begins a comment.
Source: docs/access.md#rights.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.control.access import Grants, Pattern, Right, Rule
from ksql.core import StartError, WatchedFiles, excerpt, similar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

RIGHTS: Final = "ksql.rights.file"
_LONGEST: Final = 10_000_000  # bytes: a wrong file must not fill the memory
_ROLE: Final = re.compile(r"role\s+(\S+)\s+may\s+(\S+)(?:\s+on\s+(.+))?")
_USER: Final = re.compile(r"user\s+(\S+)\s+is\s+(.+)")
_CERTIFICATE: Final = re.compile(r"certificate\s+(.+?)\s+is\s+(\S+)")
_PATTERN: Final = re.compile(
    r"(?:(topic|connector):)?(?:`((?:[^`]|``)+)`|([^\s,`*:]+))?(\*)?", re.IGNORECASE
)
_WHOLE: Final = (Right.OPERATE, Right.ADMIN)
"""Rights that may be on everything without saying so."""
_FORMS: Final = (
    "A line is one of: role NAME may RIGHT on PATTERN, .. | user NAME is ROLE, .. | "
    "certificate SUBJECT is USER"
)

Subject = frozenset[str]
"""The parts of a certificate's subject, such as ``CN=ada``, in any order."""


class BadRights(StartError):
    """A file of rights that cannot be read, or a line of it that means nothing."""

    def __init__(self, path: str, fact: str, *, line: int = 0, hint: str = _FORMS) -> None:
        place = f"{path}, line {line}" if line else path
        super().__init__(f"the file of rights {place}: {fact}", hint=hint)


class RightsAlone(StartError):
    """Rights are named, but nobody says who a user is."""

    def __init__(self) -> None:
        super().__init__(
            f"{RIGHTS} needs users: nobody signs in",
            hint="Set authentication.method=BASIC, or map clients' certificates in the file "
            "(certificate SUBJECT is USER) and set ssl.client.authentication=REQUIRED.",
        )


@dataclass(frozen=True, slots=True)
class Rights:
    """The content of a file of rights: rules by role, roles by user, users by certificate."""

    rules: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    certificates: Mapping[Subject, str] = field(default_factory=dict)

    @property
    def users(self) -> frozenset[str]:
        """The users with certificates."""
        return frozenset(self.certificates.values())

    def grants(self, user: str, roles: Collection[str]) -> Grants:
        """Return what a user may do that has those roles, and those of the file."""
        held = {*roles, *self.roles.get(user, ())}
        return Grants(tuple(rule for role in sorted(held) for rule in self.rules.get(role, ())))

    def user_of(self, subject: str) -> str:
        """Return whose certificate has that subject; empty for one that is not listed."""
        return self.certificates.get(_subject(subject), "") if subject else ""


def read_rights(path: str, users: Collection[str]) -> Rights:
    """Read a file; ``users`` have a password.

    Raises: BadRights.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LONGEST + 1)
        if len(data) > _LONGEST:
            raise BadRights(path, f"it is longer than {_LONGEST} bytes")
        return parse_rights(data.decode("utf-8-sig"), path, users)
    except UnicodeDecodeError as error:
        raise BadRights(path, "it is not UTF-8 text") from error
    except OSError as error:
        hint = "The server's user must be able to read it."
        raise BadRights(path, f"cannot read it: {error.strerror or error}", hint=hint) from error


def parse_rights(text: str, path: str, users: Collection[str]) -> Rights:
    """Return what the text of a file says.

    Raises: BadRights, with the line.
    """
    rules: dict[str, tuple[Rule, ...]] = {}
    roles: dict[str, frozenset[str]] = {}
    certificates: dict[Subject, str] = {}
    lines: dict[str, int] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        try:
            if match := _ROLE.fullmatch(line):
                rules[match[1]] = (*rules.get(match[1], ()), _rule(match[2], match[3]))
            elif match := _USER.fullmatch(line):
                lines.setdefault(match[1], number)
                roles[match[1]] = roles.get(match[1], frozenset()) | _names(match[2])
            elif match := _CERTIFICATE.fullmatch(line):
                _add_certificate(certificates, match[1], match[2])
            else:
                raise _BadLineError(f"cannot be read: {excerpt(line)}")
        except _BadLineError as bad:
            raise BadRights(path, bad.fact, line=number, hint=bad.hint) from bad
    rights = Rights(rules, roles, certificates)
    _check_names(rights, {*users, *certificates.values()}, path, lines)
    return rights


class _BadLineError(Exception):
    """A line that means nothing, with what is wrong and a hint."""

    def __init__(self, fact: str, hint: str = _FORMS) -> None:
        super().__init__(fact)
        self.fact = fact
        self.hint = hint


def _check_names(
    rights: Rights, users: Collection[str], path: str, lines: Mapping[str, int]
) -> None:
    """Check that users and roles of the file exist; ``lines`` has the first one of each user.

    Raises: BadRights.
    """
    for user, held in rights.roles.items():
        if user not in users:
            hint = _did_you_mean(user, users) or (
                "Add its password to the file of users, or a line: certificate SUBJECT is USER"
            )
            raise BadRights(path, f"there is no user {excerpt(user)}", line=lines[user], hint=hint)
        for role in sorted(held - rights.rules.keys()):
            hint = _did_you_mean(role, rights.rules) or (
                "Add a line: role NAME may RIGHT on PATTERN"
            )
            fact = f"there is no role {excerpt(role)}"
            raise BadRights(path, fact, line=lines[user], hint=hint)


def _did_you_mean(name: str, known: Collection[str]) -> str:
    names = similar(name, known)
    return f"Did you mean {names[0]}?" if names else ""


def _rule(word: str, on: str | None) -> Rule:
    try:
        right = Right(word.lower())
    except ValueError:
        hint = f"The rights are {', '.join(Right)}."
        raise _BadLineError(f"there is no right {excerpt(word)}", hint) from None
    if on is None:
        if right not in _WHOLE:
            raise _BadLineError(
                f"{right} does not say on what",
                f"Example: role NAME may {right} on ORDERS, PUBLIC_*, topic:orders",
            )
        return Rule(right)
    if right == Right.ADMIN:
        raise _BadLineError("admin is on everything", "Leave out what follows it.")
    return Rule(right, tuple(_pattern(part.strip()) for part in on.split(",")))


def _pattern(text: str) -> Pattern:
    match = _PATTERN.fullmatch(text)
    if match is None or not (match[2] or match[3] or match[4]):
        raise _BadLineError(
            f"cannot be read as a pattern: {excerpt(text) or 'nothing between two commas'}",
            "A pattern is a name, or its beginning and `*`; before that topic: or connector:, "
            "if it is one. A name in back quotes keeps its case.",
        )
    kind, quoted, plain, star = match.groups()
    if kind is None:
        name = quoted.replace("``", "`") if quoted else (plain or "").upper()
        return Pattern("source", name, star is not None)
    name = quoted.replace("``", "`") if quoted else plain or ""
    return Pattern("topic" if kind.lower() == "topic" else "connector", name, star is not None)


def _names(text: str) -> frozenset[str]:
    names = [part.strip() for part in text.split(",")]
    if not all(names) or any(len(name.split()) != 1 for name in names):
        raise _BadLineError(f"cannot be read as a list of roles: {excerpt(text)}")
    return frozenset(names)


def _add_certificate(known: dict[Subject, str], text: str, user: str) -> None:
    parts = _subject(text)
    if not parts or not all("=" in part for part in parts):
        raise _BadLineError(
            f"cannot be read as a certificate's subject: {excerpt(text)}",
            "Example: certificate CN=loader,O=Example is loader. The command `openssl x509 -noout "
            "-subject -nameopt RFC2253 -in FILE` prints the subject.",
        )
    if known.setdefault(parts, user) != user:
        raise _BadLineError("another line has this certificate for another user", "Remove one.")


def _subject(text: str) -> Subject:
    """Return the parts of a subject; a comma after a backslash is part of a value."""
    parts = re.split(r"(?<!\\),", text)
    named = (part.strip().partition("=") for part in parts if part.strip())
    return frozenset(f"{name.strip().upper()}{is_}{value.strip()}" for name, is_, value in named)


def rights_file(
    path: str, users: Callable[[], Collection[str]], clock: Callable[[], float] = time.monotonic
) -> WatchedFiles[Rights]:
    """Read a file of rights that is read again; ``users`` gives the names with a password.

    Raises: BadRights.
    """

    def read(see: Callable[[str], None]) -> Rights:
        see(path)
        return read_rights(path, users())

    return WatchedFiles("rights", read, clock, counts=lambda read: {"roles": len(read.rules)})
