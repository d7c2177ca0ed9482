"""What Tab offers: keywords, and the names that the server knows, by what stands before."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from server.cli.client import Client, ServerFailure, Unreachable
from server.cli.words import KEYWORDS

_WORD = re.compile(r"[\w@`-]*\Z")
_LAST_TOKENS = re.compile(r"[\w@-]+|[^\s\w]")
_BARE = re.compile(r"[A-Z_][A-Z0-9_@]*\Z")


@dataclass(frozen=True, slots=True)
class Names:
    """What exists on the server."""

    sources: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()


def fetch_names(client: Client) -> Names:
    """Ask the server for all names.

    Raises: ServerFailure, Unreachable.
    """
    text = "SHOW STREAMS; SHOW TABLES; SHOW FUNCTIONS; SHOW QUERIES; SHOW TOPICS;"
    found: defaultdict[str, list[str]] = defaultdict(list)
    for entity in client.execute(text):
        for key in ("streams", "tables", "functions", "queries", "topics"):
            found[key] += [item.get("name") or item["id"] for item in entity.get(key) or ()]
    return Names(
        sources=tuple(_quoted(name) for name in (*found["streams"], *found["tables"])),
        functions=tuple(found["functions"]),
        queries=tuple(found["queries"]),
        topics=tuple(found["topics"]),
    )


def _quoted(name: str) -> str:
    bare = _BARE.match(name) and name not in KEYWORDS
    return name if bare else "`" + name.replace("`", "``") + "`"


_BY_CONTEXT: dict[str, Callable[[Names], Iterable[str]]] = {
    "FROM": lambda names: names.sources,
    "JOIN": lambda names: names.sources,
    "INTO": lambda names: names.sources,
    "DESCRIBE": lambda names: (
        *names.sources,
        *("FUNCTION", "STREAMS", "TABLES", "CONNECTOR"),
    ),
    "DROP STREAM": lambda names: names.sources,
    "DROP TABLE": lambda names: names.sources,
    "ALTER STREAM": lambda names: names.sources,
    "ALTER TABLE": lambda names: names.sources,
    "TERMINATE": lambda names: (*names.queries, "ALL"),
    "PAUSE": lambda names: (*names.queries, "ALL"),
    "RESUME": lambda names: (*names.queries, "ALL"),
    "EXPLAIN": lambda names: (*names.queries, "SELECT", "CREATE"),
    "PRINT": lambda names: names.topics,
    "FUNCTION": lambda names: names.functions,
}


class SqlCompleter(Completer):
    """Completes the word before the cursor; the names are fetched in the background."""

    def __init__(self, commands: Iterable[str] = ()) -> None:
        self.names = Names()
        self._commands = tuple(commands)

    def refresh(self, client: Client) -> threading.Thread:
        """Fetch the names anew; a server that does not answer leaves the old ones."""

        def fetch() -> None:
            try:
                with closing(client.at(client.url)) as own:  # the user may change servers meanwhile
                    self.names = fetch_names(own)
            except (ServerFailure, Unreachable):
                return

        thread = threading.Thread(target=fetch, name="names", daemon=True)
        thread.start()
        return thread

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterator[Completion]:
        """What could stand here."""
        before = document.text_before_cursor
        found = _WORD.search(before)
        word = found[0] if found else ""
        lower = word.islower()
        for candidate in self._candidates(before[: len(before) - len(word)], word):
            shown = candidate.lower() if lower and candidate in KEYWORDS else candidate
            yield Completion(shown, start_position=-len(word))

    def _candidates(self, before: str, word: str) -> Iterator[str]:
        tokens = [token.upper() for token in _LAST_TOKENS.findall(before)[-2:]]
        for context in (" ".join(tokens), *tokens[-1:]):
            if context in _BY_CONTEXT:
                return _matching(word, _BY_CONTEXT[context](self.names))
        everything = (*KEYWORDS, *self.names.functions, *self.names.sources)
        if not before.strip():
            everything = (*self._commands, *everything)
        return _matching(word, everything) if word else iter(())


def _matching(word: str, names: Iterable[str]) -> Iterator[str]:
    start = word.upper().lstrip("`")
    return iter(sorted({n for n in names if n.upper().lstrip("`").startswith(start)}))
