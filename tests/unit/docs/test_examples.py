"""Every example of the documents is run, and every answer that is shown is compared."""

from __future__ import annotations

import json

import httpx
import pytest

from ksql.functions.udf import load_sources
from ksql.sql.syntax.parser import parse_one, split
from tests.unit.cli.desk import Desk
from tests.unit.docs.fences import PAGES, ROOT, blocks, exchanges, plain, replaced, session_text
from tests.unit.docs.memory import DocumentService
from tests.unit.server.web import serving

NOT_RUN = {"", "text", "console", "properties", "toml"}


class Page:
    """A service behind a socket, a terminal and a client, for one page.

    Each method runs one kind of example and gives the text that the page should show for it.
    """

    def __init__(self, service, url):
        self._service = service
        self._url = url
        self._answer = None
        self._desk = Desk(url)

    def setup(self, text):
        self._service.execute(text)
        return text

    def sql(self, text):
        self._desk.run(text)
        return text

    def parsed(self, text):
        for raw in split(text):
            parse_one(raw)
        return text

    def ksql(self, text):
        blocks_ = []
        for typed, shown in exchanges(text):
            self._desk.terminal.run(typed)
            answer = self._desk.out() + self._desk.errors()
            blocks_.append((typed, shown if plain(shown) == plain(answer) else answer))
        return session_text(blocks_)

    def http(self, text):
        head, _, body = text.partition("\n")
        method, path = head.split()
        accept = {"Accept": "application/vnd.ksqlapi.delimited.v1"} if "stream" in path else {}
        self._answer = httpx.request(method, self._url + path, content=body, headers=accept)
        return text

    def json(self, text):
        """The answer to the request before it; without one, just JSON."""
        answer, self._answer = self._answer, None
        if answer is None:
            json.loads(text)
            return text
        if "json" not in answer.headers["content-type"]:
            return answer.text
        same = json.loads(text) == answer.json()
        return text if same else json.dumps(answer.json(), indent=2) + "\n"

    def python(self, text):
        """A file of user functions that the server reads when it starts."""
        functions, problems = load_sources({"page.py": text})
        assert not problems
        self._service.world.learn(functions)
        return text

    def close(self):
        self._desk.close()


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples(path, monkeypatch, request):
    page_text = path.read_text("utf-8")
    examples = [block for block in blocks(page_text) if block.kind not in NOT_RUN]
    monkeypatch.delenv("COLUMNS", raising=False)
    service = DocumentService()
    with serving(service) as (url, _app):
        page = Page(service, url)
        try:
            shown = [_run(page, block, path) for block in examples]
        finally:
            page.close()
    if request.config.getoption("--update-docs", default=False):
        path.write_text(replaced(page_text, list(zip(examples, shown, strict=True))), "utf-8")
        return
    for block, text in zip(examples, shown, strict=True):
        assert plain(block.text) == plain(text), f"{path.relative_to(ROOT)}, line {block.line}"


def _run(page, block, path):
    try:
        return getattr(page, block.kind)(block.text)
    except BaseException as error:
        error.add_note(f"{path.relative_to(ROOT)}, line {block.line}")
        raise
