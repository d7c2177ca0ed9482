"""The statements of a migration file: its pieces, what it may contain, what it allows.

Source: ksqlDB's CommandParser; its page "Manage metadata schemas", supported statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from server.cli.client import JsonObject
from server.cli.kept import without_secrets
from server.cli.migrations.failure import MigrationFailed
from server.cli.session import with_values
from server.cli.split import Statement, split

_NAME = r"[A-Za-z_][A-Za-z0-9_@]*"
_TEXT = r"'((?:[^']|'')*)'"
_SET = re.compile(rf"SET\s+{_TEXT}\s*=\s*{_TEXT}\s*;", re.IGNORECASE)
_UNSET = re.compile(rf"UNSET\s+{_TEXT}\s*;", re.IGNORECASE)
_DEFINE = re.compile(rf"DEFINE\s+({_NAME})\s*=\s*{_TEXT}\s*;", re.IGNORECASE)
_UNDEFINE = re.compile(rf"UNDEFINE\s+({_NAME})\s*;", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"(SELECT|PRINT|SHOW|LIST|DESCRIBE|EXPLAIN|RUN\s+SCRIPT)\b", re.IGNORECASE
)
_WAITS = re.compile(r"ASSERT\b|(?:CREATE|DROP)\s+(?:SOURCE\s+|SINK\s+)?CONNECTOR\b", re.IGNORECASE)
_MODE = re.compile(r"\bREPLACE_MODE\s*=\s*'([^']*)'", re.IGNORECASE)
_HEAD = re.compile(r"/\*.*?\*/|(?P<line>--[^\n]*)|(?P<statement>\S)", re.DOTALL)
_ALLOW = re.compile(r"--\s*allow\s*:(.*)", re.IGNORECASE)
_ROLLBACK = re.compile(r"ROLLBACK\b", re.IGNORECASE)
_STREAMS_PREFIX = "ksql.streams."

IN_PLACE = "in place"
DEFAULT_CLASSES = frozenset({"transparent", "data selection", "schema evolution", "configuration"})
CLASSES = DEFAULT_CLASSES | {"source modifying", "topology", "scaling", "unsupported"}
MODES = frozenset({"rebuild", "backfill"})


@dataclass(frozen=True, slots=True)
class Allowed:
    """The classes of replacements in place that a file allows, and the other modes."""

    classes: frozenset[str] = DEFAULT_CLASSES
    modes: frozenset[str] = frozenset()

    def lacks(self, mode: str, classes: Iterable[str]) -> tuple[str, ...]:
        """Return the words that the file's head lacks for a replacement; empty if it may be.

        Another mode than in place is allowed by its own name, whatever the classes are.
        """
        if mode != IN_PLACE:
            return () if mode in self.modes else (mode,)
        return tuple(name for name in classes if name not in self.classes | {"transparent"})

    def __str__(self) -> str:
        return ", ".join([*sorted(self.classes), *sorted(self.modes)])


def allowed_by(text: str) -> Allowed:
    """Return what the comments at the head of a file allow.

    Classes replace the four that are allowed by default; modes come on top.
    Raises: MigrationFailed for a word that is neither.
    """
    words: list[str] = []
    for piece in _HEAD.finditer(text):
        if piece["statement"]:
            break
        if stated := _ALLOW.fullmatch((piece["line"] or "").strip()):
            words += [" ".join(word.lower().split()) for word in stated[1].split(",")]
    for word in words:
        if word not in CLASSES | MODES:
            known = ", ".join([*sorted(CLASSES), *sorted(MODES)])
            raise MigrationFailed(f"'-- allow:' does not know '{word}', only {known}")
    classes = frozenset(words) & CLASSES
    return Allowed(classes or DEFAULT_CLASSES, frozenset(words) & MODES)


def statements_of(text: str) -> tuple[Statement, ...]:
    """Cut a file into statements; comments become blanks.

    Raises: MigrationFailed for a quote that nothing closes.
    """
    pieces = split(text)
    if pieces.open_quote:
        raise MigrationFailed(
            f"Failed to parse sql: {without_secrets(pieces.rest.text)}. "
            f"Error: the quote {pieces.open_quote} is open"
        )
    return pieces.closed()


def check_supported(statement: Statement) -> None:
    """Check that a migration file may contain the statement.

    Raises: MigrationFailed.
    """
    refused = _UNSUPPORTED.match(statement.text)
    if refused:
        kind = " ".join(refused[1].upper().split())
        raise MigrationFailed(
            f"Failed to parse sql: {without_secrets(statement.text)}. "
            f"Error: '{kind}' statements are not supported."
        )


def batches(statements: Iterable[Statement]) -> Iterator[tuple[Statement, ...]]:
    """Yield the statements that can be checked together.

    One that waits for what others make (ASSERT, a connector) ends its batch: those after it may
    need what has come meanwhile.
    """
    batch: list[Statement] = []
    for statement in statements:
        batch.append(statement)
        if _WAITS.match(statement.text):
            yield tuple(batch)
            batch = []
    if batch:
        yield tuple(batch)


def mode_of(statement: str, report: JsonObject | None) -> str:
    """Return how a replacement is carried out: what the server says, else the statement's text.

    ``auto`` counts as a rebuild as long as the server does not say which of the two it would be. A
    rollback is a rebuild.
    """
    if _ROLLBACK.match(statement):
        return "rebuild"
    said = (report or {}).get("mode")
    stated = _MODE.search(statement)
    mode = str(said or (stated[1] if stated else IN_PLACE)).lower().replace("_", " ")
    return "rebuild" if mode == "auto" else mode


@dataclass(slots=True)
class FileSession:
    """The properties and variables of one file: no later file has them."""

    variables: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)

    def take(self, text: str) -> bool:
        """Carry out SET, UNSET, DEFINE or UNDEFINE; False for any other statement."""
        if match := _SET.fullmatch(text):
            name, value = map(self._filled, match.groups())
            self.properties[name] = value
        elif match := _UNSET.fullmatch(text):
            self.properties.pop(self._filled(match[1]), None)
        elif match := _DEFINE.fullmatch(text):
            self.variables[match[1]] = self._filled(match[2])
        elif match := _UNDEFINE.fullmatch(text):
            self.variables.pop(match[1], None)
        else:
            return False
        return True

    def _filled(self, text: str) -> str:
        return self.filled(text.replace("''", "'"))

    def filled(self, text: str) -> str:
        """Return a text with the values of the variables that are known."""
        return with_values(text, self.variables)

    def undone(self, before: Mapping[str, str]) -> list[str]:
        """Return the statements after which only the variables ``before`` are there again."""
        names = {name.removeprefix(_STREAMS_PREFIX) for name in self.properties}
        unset = [f"UNSET {_quoted(name)};" for name in sorted(names)]
        undefine = [f"UNDEFINE {name};" for name in sorted(self.variables.keys() - before.keys())]
        define = [
            f"DEFINE {name} = {_quoted(value)};"
            for name, value in sorted(before.items())
            if self.variables.get(name) != value
        ]
        return [*unset, *undefine, *define]


def filled(statements: Iterable[Statement], variables: Mapping[str, str]) -> Iterator[Statement]:
    """Yield the first statements of a file with the values that their variables have there."""
    session = FileSession(dict(variables))
    for statement in statements:
        yield replace(statement, text=session.filled(statement.text))
        session.take(statement.text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
