"""The browser of the console's ring: this machine's Chromium, driven by Playwright."""

from __future__ import annotations

import importlib.util
import os
import shutil

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def missing() -> str:
    """Return why the ring cannot run here; empty if it can."""
    if importlib.util.find_spec("playwright") is None:
        return "the package playwright is not installed"
    if path() is None:
        return "there is no Chromium: apt-get install chromium"
    return ""


def path() -> str | None:
    """Return the browser; ``KSQL_TEST_BROWSER`` names another one."""
    named = os.environ.get("KSQL_TEST_BROWSER")
    return named or next((there for name in _NAMES if (there := shutil.which(name))), None)


def options() -> list[str]:
    """Return its options: root has no sandbox."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []
