"""Golden files: an input and, in lines that start with ``-->``, what comes of it.

Blank lines stand between them.

``pytest tests/golden --update-golden`` writes the files again; the difference is read in review.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_MARK = "-->"


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


@pytest.fixture
def golden(request):
    """Compares a file's expectations with what a function makes of its inputs."""
    update = request.config.getoption("--update-golden", default=False)

    def check(path: Path, produce: Callable[[str], str]) -> None:
        blocks = [_block(text) for text in path.read_text("utf-8").strip().split("\n\n")]
        outputs = [(source, produce(source)) if source else ("", note) for source, note in blocks]
        if update:
            path.write_text("\n\n".join(map(_text, outputs)) + "\n", "utf-8")
            return
        for (source, expected), (_, actual) in zip(blocks, outputs, strict=True):
            assert actual == expected, f"of {source}"

    return check


def _block(text: str) -> tuple[str, str]:
    """The input and the expectation; a block of comments alone has neither."""
    lines = text.split("\n")
    if all(line.startswith("--") and not line.startswith(_MARK) for line in lines):
        return "", text
    source = "\n".join(line for line in lines if not line.startswith(_MARK))
    marked = (line for line in lines if line.startswith(_MARK))
    return source, "\n".join(line.removeprefix(_MARK).removeprefix(" ") for line in marked)


def _text(block: tuple[str, str]) -> str:
    source, result = block
    if not source:
        return result
    return "\n".join([source, *(f"{_MARK} {line}".rstrip() for line in result.split("\n"))])
