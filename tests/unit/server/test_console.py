"""The console's files: what is served, and that they are what was pinned."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from ksql.core.config import Settings
from ksql.http.access import Access
from server.app import create_app
from server.console import ENABLED
from server.console.site import files
from server.console.sqlwords import FILE, text
from server.context import AppContext
from tests.unit.server.fakes import FakeService
from tests.unit.server.web import ask

CONSOLE = Path(__file__).parents[3] / "server" / "console"
PINNED = CONSOLE / "vendor" / "sha256sums.txt"
MOST_BYTES = 1_000_000
FOREIGN = re.compile(r"""(?:src|href|from|import|url|fetch)\s*[=(]?\s*["'(`]\s*(?:https?:)?//""")
AS_HTML = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(")


def own():
    return {n: f for n, f in files().items() if n.endswith(".js") and not n.startswith("vendor/")}


def test_the_page_is_served_with_a_policy() -> None:
    answer = ask(FakeService(), "GET", "/console")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_file_that_the_browser_has_is_not_sent_again() -> None:
    tag = ask(FakeService(), "GET", "/console/main.js").headers["etag"]
    again = ask(FakeService(), "GET", "/console/main.js", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/console/nothing.js", "/console/../site.py", "/console/%2e%2e/site.py"]
)
def test_nothing_else_is_served(path: str) -> None:
    assert ask(FakeService(), "GET", path).status_code == 404


def test_it_can_be_switched_off() -> None:
    assert Settings({}).flag(ENABLED)
    app = create_app(context=AppContext(FakeService()), with_console=False)
    assert ask(FakeService(), "GET", "/console", app=app).status_code == 404


def test_it_is_there_while_the_server_starts() -> None:
    app = create_app(context=AppContext(FakeService(), "INITIALIZING"))
    assert ask(FakeService(), "GET", "/console", app=app).status_code == 200


def test_pages_of_other_origins_do_not_get_it() -> None:
    app = create_app(FakeService(), access=Access())
    foreign = {"origin": "http://elsewhere.example"}
    assert ask(FakeService(), "GET", "/console", app=app, headers=foreign).status_code == 403


def test_the_libraries_are_those_that_were_pinned() -> None:
    pinned = {
        name.removeprefix("./"): digest
        for digest, name in (line.split() for line in PINNED.read_text("utf-8").splitlines())
    }
    served = {n.removeprefix("vendor/"): f for n, f in files().items() if n.startswith("vendor/")}
    assert {n: hashlib.sha256(f.content).hexdigest() for n, f in served.items()} == pinned


def test_it_is_light() -> None:
    assert sum(len(file.zipped) for file in files().values()) < MOST_BYTES


def test_no_file_is_of_another_host() -> None:
    for name, file in files().items():
        if not name.startswith("vendor/"):
            assert FOREIGN.search(file.content.decode()) is None, name


def test_no_text_is_read_as_html() -> None:
    for name, file in own().items():
        assert [word for word in AS_HTML if word in file.content.decode()] == [], name


def test_all_modules_are_loaded_at_once() -> None:
    page = files()["index.html"].content.decode()
    loaded = set(re.findall(r'(?:href|src)="/console/([^"]+\.js)"', page))
    assert loaded == {name for name in files() if name.endswith(".js")}


def test_a_browser_gets_them_compressed() -> None:
    answer = ask(FakeService(), "GET", "/console/main.js", headers={"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.content == files()["main.js"].content


def test_imports_lead_to_files() -> None:
    imported = re.compile(r'(?:from|import) "(\.[^"]+)"')
    for name, file in own().items():
        for path in imported.findall(file.content.decode()):
            target = (Path("/") / Path(name).parent / path).resolve().relative_to("/")
            assert str(target) in files(), f"{name} imports {path}"


def test_the_editor_has_the_words_of_the_grammar() -> None:
    assert FILE.read_text("utf-8") == text()
