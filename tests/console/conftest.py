"""One browser and one real server serve this ring; odd servers live in the test's process."""

from __future__ import annotations

import pytest

from tests.console import chromium
from tests.console.pages import Console
from tests.kafka.servers import ServerProcess


def pytest_collection_modifyitems(items):
    if why := chromium.missing():
        skipped = pytest.mark.skip(reason=f"the console's ring is left out: {why}")
        for item in items:
            if "tests/console/" in item.path.as_posix():
                item.add_marker(skipped)


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 it may not be installed

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.path(), args=chromium.options()
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server as a process, with short looks at its queries."""
    folder = tmp_path_factory.mktemp("console")
    server = ServerProcess(
        folder / "log",
        ksql__state__dir=str(folder / "state"),
        ksql__service__id="console_",
        ksql__metrics__interval__ms="500",
        ksql__heartbeat__enable="true",
    )
    yield server
    server.stop()


@pytest.fixture
def console(browser):
    """Opens the console of a URL; what it logs as an error fails the test."""
    opened = []

    def open_at(url, path="", **context):
        console = Console(browser.new_context(**context), url)
        opened.append(console)
        console.open(path)
        return console

    yield open_at
    for console in opened:
        console.close()
    for console in opened:
        assert console.errors == []
