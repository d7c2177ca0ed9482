"""The prompt: statements over several lines, history, completion, colours, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output import Output

from server.cli.client import ServerFailure
from server.cli.commands import COMMANDS, Exit, greet
from server.cli.complete import SqlCompleter
from server.cli.kept import without_secrets
from server.cli.split import split
from server.cli.terminal import PROMPT, Terminal
from server.cli.words import KEYWORDS

_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<string>'(?:[^']|'')*'?)"
    r"|(?P<name>`(?:[^`]|``)*`?|\"(?:[^\"]|\"\")*\"?)"
    r"|(?P<variable>\$\{[^}\s]*\}?)"
    r"|(?P<number>\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)"
    r"|(?P<word>[A-Za-z_][\w@]*)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_STYLES = {
    "comment": "ansibrightblack italic",
    "string": "ansigreen",
    "name": "ansiyellow",
    "variable": "ansimagenta",
    "number": "ansicyan",
}


class SqlColours(Lexer):
    """Keywords, texts, numbers and comments, each in its colour."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """Return rich text per line, for the prompt."""
        fragments: StyleAndTextTuples = [
            (_style(token), token[0]) for token in _TOKEN.finditer(document.text)
        ]
        lines = list(split_lines(fragments))
        return lambda number: lines[number] if number < len(lines) else []


def _style(token: re.Match[str]) -> str:
    if token.lastgroup == "word":
        return "bold ansiblue" if token[0].upper() in KEYWORDS else ""
    return _STYLES.get(token.lastgroup or "", "")


_PATIENCE_S = 1.0  # for names that are still being fetched when the user leaves
HISTORY_VARIABLE = "KSQL_HISTORY_FILE"


class Memory(FileHistory):
    """The history file; a text that repeats the one before is not kept twice.

    The file has no passwords; what was typed since the terminal began can be recalled whole.
    """

    _last: str | None = None

    def store_string(self, string: str) -> None:
        """Write one entry."""
        if string != self._last:
            super().store_string(without_secrets(string))
        self._last = string


def history_file() -> Path:
    """Return ``~/.ksql-history``, or what KSQL_HISTORY_FILE says."""
    return Path(os.environ.get(HISTORY_VARIABLE) or "~/.ksql-history").expanduser()


def _history() -> History:
    path = history_file()
    try:
        path.touch(mode=0o600)
        if path.is_file():  # an earlier one may be open to other users
            path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return Memory(path)


class Repl:
    """Reads and runs until the user leaves."""

    def __init__(
        self,
        terminal: Terminal,
        *,
        source: Input | None = None,
        sink: Output | None = None,
        history: History | None = None,
    ) -> None:
        self._terminal = terminal
        self._completer = SqlCompleter({name: entry.usage for name, entry in COMMANDS.items()})
        self._fetching: Thread | None = None
        past = history or _history()
        self._prompt: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            history=past,
            completer=self._completer,
            complete_while_typing=False,
            lexer=SqlColours(),
            auto_suggest=AutoSuggestFromHistory(),
            key_bindings=self._keys(),
            prompt_continuation=_continuation,
            input=source,
            output=sink,
        )
        terminal.history = lambda: list(past.get_strings())
        terminal.after_change = self._refresh

    def run(self) -> None:
        """Greet, then read and run."""
        self._terminal.screen.paging = True
        self._try_to_greet()
        self._refresh()
        self._read()
        if self._fetching is not None:
            self._fetching.join(_PATIENCE_S)

    def _read(self) -> None:
        while True:
            try:
                text = self._prompt.prompt()
                self._terminal.screen.record(PROMPT + text)
                if text.strip():
                    self._terminal.run(text)
            except KeyboardInterrupt:
                continue  # the line, or the statement that was waited for, is given up
            except (EOFError, Exit):
                return

    def _try_to_greet(self) -> None:
        try:
            greet(self._terminal)
        except ServerFailure as failure:
            self._terminal.screen.note(failure.message)

    def _refresh(self) -> None:
        self._fetching = self._completer.refresh(self._terminal.client)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter", filter=~completion_is_selected)
        def _enter(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if self._terminal.is_whole(buffer.text):
                buffer.validate_and_handle()
            else:
                buffer.insert_text("\n")

        @keys.add("enter", filter=completion_is_selected)
        def _choose(event: KeyPressEvent) -> None:
            event.current_buffer.complete_state = None

        return keys


def _continuation(_width: int, line: int, _wraps: int) -> str:
    """Return the prompt of the lines after the first; it shows a quote that is still open."""
    text = get_app().current_buffer.text
    quote = split("\n".join(text.split("\n")[:line])).open_quote
    return f"{quote[:1] or ' '}> ".rjust(len(PROMPT))
