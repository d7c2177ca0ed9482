"""The memory of a terminal session, and the statements that it answers by itself.

Source: docs/sql/managing.md#set-unset.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from server.cli.client import Client, JsonObject, ServerFailure, Unreachable

Output = Literal["TABLE", "JSON", "CSV"]
OUTPUTS: dict[str, Output] = {"TABLE": "TABLE", "JSON": "JSON", "CSV": "CSV", "TABULAR": "TABLE"}
"""The forms of answers by their names; ksqlDB calls a table TABULAR."""

_BAD_REQUEST = 400
_NAME = r"[A-Za-z_][A-Za-z0-9_@]*"
_TEXT = r"'((?:[^']|'')*)'"
_VARIABLE = re.compile(r"\$\{(" + _NAME + r")\}")


class StatementRefused(Exception):
    """A statement that the terminal answers itself, and answers with no."""


@dataclass(kw_only=True)
class Session:
    """Settings, properties and variables; the highest command sequence number seen.

    ``token`` names the rows that the session has written and seen: its queries show no older ones.
    """

    output: Output = "TABLE"
    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    sequence: int | None = None
    token: str = ""
    pipelining: bool = False
    timing: bool = False
    wrap: bool = True
    column_width: int = 0
    row_limit: int | None = None
    timeout_ms: int | None = None

    def saw(self, entity: JsonObject) -> None:
        """Remember how far the command log has come, so that the next statement waits for it."""
        self.token = entity.get("consistencyToken", self.token)
        number = entity.get("commandSequenceNumber")
        if isinstance(number, int) and number > (-1 if self.sequence is None else self.sequence):
            self.sequence = number

    @property
    def wait_for(self) -> int | None:
        """The sequence number to send along."""
        return None if self.pipelining else self.sequence

    @property
    def seen(self) -> str | None:
        """The token to send along; None if nothing should wait."""
        return None if self.pipelining else self.token

    def reset(self) -> None:
        """Forget what belongs to one server."""
        self.properties.clear()
        self.sequence = None
        self.token = ""

    def filled(self, text: str) -> str:
        """Return the text with the variables it names; unknown ones stay as they are."""
        return with_values(text, self.variables)


def with_values(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with the values of those variables."""
    return _VARIABLE.sub(lambda reference: variables.get(reference[1], reference[0]), text)


def _plain(text: str) -> str:
    return text.replace("''", "'")


def _set(session: Session, client: Client, name: str, value: str) -> list[JsonObject]:
    name = session.filled(_plain(name))
    value = session.filled(_plain(value))
    warnings = client.execute(_assignment(name, value))
    old = session.properties.get(name)
    session.properties[name] = value
    was = "" if old is None else f" (it was '{old}')"
    return [_said(f"Property '{name}' is now '{value}' in this session{was}."), *warnings]


def _assignment(name: str, value: str) -> str:
    """Return the statement that makes the server look at the value; it keeps nothing of it."""
    return "SET '{}' = '{}';".format(*(text.replace("'", "''") for text in (name, value)))


def _unset(session: Session, _client: Client, name: str) -> list[JsonObject]:
    name = session.filled(_plain(name))
    if name not in session.properties:
        raise StatementRefused(f"Cannot unset property '{name}': it is not set in this session.")
    old = session.properties.pop(name)
    return [_said(f"Property '{name}' is no longer set (it was '{old}').")]


def _define(session: Session, _client: Client, name: str, value: str) -> list[JsonObject]:
    session.variables[name] = session.filled(_plain(value))
    return []


def _undefine(session: Session, _client: Client, name: str) -> list[JsonObject]:
    if session.variables.pop(name, None) is None:
        return [_said(f"Cannot undefine variable '{name}': it was never defined.")]
    return []


def _variables(session: Session, _client: Client) -> list[JsonObject]:
    pairs = [{"name": name, "value": value} for name, value in sorted(session.variables.items())]
    return [{"@type": "variables", "statementText": "SHOW VARIABLES;", "variables": pairs}]


def _said(message: str) -> JsonObject:
    return {"@type": "message", "message": message}


_LOCAL: tuple[tuple[re.Pattern[str], Callable[..., list[JsonObject]]], ...] = tuple(
    (re.compile(pattern + r"\s*;?\s*\Z", re.IGNORECASE | re.DOTALL), handler)
    for pattern, handler in (
        (rf"SET\s+{_TEXT}\s*=\s*{_TEXT}", _set),
        (rf"UNSET\s+{_TEXT}", _unset),
        (rf"DEFINE\s+({_NAME})\s*=\s*{_TEXT}", _define),
        (rf"UNDEFINE\s+({_NAME})", _undefine),
        (r"(?:SHOW|LIST)\s+VARIABLES", _variables),
    )
)


def set_up(session: Session, client: Client, properties: Mapping[str, str]) -> list[str]:
    """Set the properties of a file; return what the server says of those that it does not take.

    A server that does not answer is asked about them with the first statement.
    Raises: ServerFailure of another kind than a statement's, such as of a user who is unknown.
    """
    refused = []
    for name, value in properties.items():
        try:
            client.execute(_assignment(name, value))
        except ServerFailure as failure:
            if failure.code // 100 != _BAD_REQUEST:
                raise
            refused.append(f"{name}: {failure.message.partition(chr(10))[0]}")
        except Unreachable:
            session.properties.update(properties)
            return []
        else:
            session.properties[name] = value
    return refused


def answer_locally(text: str, session: Session, client: Client) -> list[JsonObject] | None:
    """Return the entities of a statement that belongs to the session; None for other statements.

    A malformed one is left to the server, whose parser can say what is wrong with it.
    Raises: StatementRefused; ServerFailure, Unreachable while a property is checked.
    """
    for pattern, handler in _LOCAL:
        match = pattern.match(text)
        if match:
            return handler(session, client, *match.groups())
    return None


def of_the_session(text: str) -> bool:
    """Return whether it is a statement that changes the session and nothing else."""
    return any(pattern.match(text) for pattern, handler in _LOCAL if handler is not _variables)
