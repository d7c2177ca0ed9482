"""Completion on Tab: the commands, words and names that fit the place."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from server.cli.client import Client, ServerFailure, Unreachable
from server.cli.context import Cursor, Names, Suggestion, fetch_names, suggestions, texts, tokens_of
from server.cli.split import Split, split
from server.cli.words import KEYWORDS, TYPES, WITH_PROPERTIES

_WORD = re.compile(r"[\w@]*\Z")
_CHOICE = re.compile(r"\b[A-Z]{2,}\b")
_CLOSING = {"'": "'", "`": "", '"': ""}
_MAY_BE_LOWER = KEYWORDS | {*TYPES, *WITH_PROPERTIES}


class SqlCompleter(Completer):
    """Completes the word before the cursor; the names are fetched in the background."""

    def __init__(self, commands: Mapping[str, str] | None = None) -> None:
        """Take the terminal's own commands: the name of each, and how it is written."""
        self.names = Names()
        self._commands = commands or {}
        self._paths = PathCompleter(expanduser=True)

    def refresh(self, client: Client) -> threading.Thread:
        """Fetch the names again; a server that does not answer leaves the old ones."""

        def fetch() -> None:
            try:
                with closing(client.at(client.url)) as own:  # the user may change servers meanwhile
                    self.names = fetch_names(own)
            except (ServerFailure, Unreachable):
                return

        thread = threading.Thread(target=fetch, name="names", daemon=True)
        thread.start()
        return thread

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        """Offer the words that could be at the cursor."""
        before = document.text_before_cursor
        pieces = split(before)
        if pieces.open_quote:
            return self._in_quotes(pieces, document, event)
        if not split(f"{before}x").rest.text.endswith("x"):
            return iter(())  # in a comment
        return self._outside(pieces.rest.text, document)

    def _outside(self, statement: str, document: Document) -> Iterator[Completion]:
        match = _WORD.search(document.text_before_cursor)
        word = match[0] if match else ""
        head = statement[: len(statement) - len(word)]
        yield from self._of_commands(f"{head}{word}" if word else f"{head} ".lstrip(), word)
        cursor = _cursor(head, document)
        yield from _matching(word, suggestions(cursor, self.names))

    def _of_commands(self, typed: str, word: str) -> Iterator[Completion]:
        """Return the rest of a command, or what it may be given."""
        plain = typed.lower()
        for name, usage in self._commands.items():
            if name.startswith(plain):
                start = plain.rfind(" ") + 1
                yield Completion(name[start:], start - len(plain), display_meta="command")
            elif plain == f"{name} {word.lower()}":
                choices = _CHOICE.findall(usage.removeprefix(name))
                yield from _matching(word, (Suggestion(choice.lower()) for choice in choices))

    def _in_quotes(
        self, pieces: Split, document: Document, event: CompleteEvent
    ) -> Iterator[Completion]:
        quote, statement = pieces.open_quote, pieces.rest.text
        if quote not in _CLOSING:
            return  # in a comment
        head = statement[: pieces.open_at]
        word = document.text_before_cursor.rpartition(quote)[2]
        if "<file>" in self._commands.get(" ".join(head.lower().split()), ""):
            yield from self._paths.get_completions(Document(word), event)
            return
        cursor = _cursor(head, document)
        if quote == "'":
            is_closed = document.text_after_cursor.startswith(quote)
            end = "" if is_closed else quote
            yield from _matching(
                word, (Suggestion(text + end) for text in texts(cursor, self.names))
            )
        else:
            quoted = (c for c in suggestions(cursor, self.names) if c.text.startswith(quote))
            yield from _matching(quote + word, quoted)


def _cursor(head: str, document: Document) -> Cursor:
    rest = document.text_after_cursor.partition(";")[0]
    return Cursor(tokens_of(head), tokens_of(f"{head} {rest}"))


def _matching(word: str, options: Iterable[Suggestion]) -> Iterator[Completion]:
    start, is_lower = word.upper().lstrip("`"), word.islower()
    for option in options:
        text = option.text
        if text.upper().lstrip("`'").startswith(start):
            shown = text.lower() if is_lower and text in _MAY_BE_LOWER else text
            yield Completion(shown, -len(word), display_meta=option.about)
