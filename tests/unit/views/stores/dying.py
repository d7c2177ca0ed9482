"""Work that dies in the middle, in processes of its own that need not load its modules each."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 60.0

_forkserver = multiprocessing.get_context("forkserver")
_forkserver.set_forkserver_preload(
    ["tests.unit.views.stores.fed", "tests.unit.views.stores.upgraded"]
)


def ended(folder: Path, work: Callable[..., object], *arguments: object) -> tuple[int, str]:
    """Do the work there; how its process has ended, as of subprocesses, and what it raised."""
    errors = folder / "errors.txt"
    process = _forkserver.Process(target=_do, args=(errors, work, arguments))
    process.start()
    process.join(PATIENCE_S)
    if process.exitcode is None:
        process.kill()
        process.join(PATIENCE_S)
        return 0, f"it has not ended within {PATIENCE_S:g} s"
    return process.exitcode, errors.read_text() if errors.exists() else ""


def _do(errors: Path, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
    try:
        work(*arguments)
    except BaseException:
        errors.write_text(traceback.format_exc())
        raise
