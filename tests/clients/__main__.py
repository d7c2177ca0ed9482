"""``python -m tests.clients``: clients of ksqlDB take a tour of a server that is started for it.

The packages come from their public registries into a folder that is thrown away. Needs Node and
npm, Go, and a Python of at most 3.9, which is the newest that ksql-python's HTTP/2 library runs on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.kafka.servers import ServerProcess

HERE = Path(__file__).parent
NODE_CLIENT = "ksqldb-client@1.0.5"
PYTHON_CLIENT = "ksql==0.10.2"
OLD_PYTHONS = ("python3.9", "python3.8", "python3.7")
PYENV_VERSIONS = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
_TOUR_S = 300


class Missing(RuntimeError):
    """A tool of a client's language that is not on this machine."""


def _run(command: Sequence[str | Path], folder: Path, **environment: str) -> None:
    subprocess.run(command, cwd=folder, env=os.environ | environment, check=True, timeout=_TOUR_S)


def node(url: str, folder: Path) -> None:
    """npm's ksqldb-client."""
    _run(("npm", "install", "--silent", "--prefix", folder, NODE_CLIENT), folder)
    tour = ("node", HERE / "tour.js", url.rpartition(":")[2])
    _run(tour, folder, NODE_PATH=str(folder / "node_modules"))


def go(url: str, folder: Path) -> None:
    """Go's own transport, full duplex."""
    _run(("go", "run", ".", url), HERE / "go", GOCACHE=str(folder / "cache"), GOFLAGS="-mod=mod")


def python(url: str, folder: Path) -> None:
    """ksql-python; its setup wants the environment's own pip and setuptools."""
    _run((_old_python(), "-m", "venv", folder / "env"), folder)
    inside = folder / "env/bin/python"
    install = (inside, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    _run((*install, "setuptools<81", "wheel"), folder)
    _run((*install, "--no-build-isolation", PYTHON_CLIENT), folder)
    _run((inside, HERE / "tour.py", url), folder)


def _old_python() -> str:
    for python in _candidates():
        if _works(python):
            return python
    raise Missing("no Python of at most 3.9; name one: OLD_PYTHON=/path/to/python3.9")


def _candidates() -> Iterator[str]:
    for name in (os.environ.get("OLD_PYTHON", ""), *OLD_PYTHONS):
        if name and (executable := shutil.which(name)):
            yield executable
    for name in OLD_PYTHONS:  # pyenv's own, also those that it does not put on the path
        yield from map(str, PYENV_VERSIONS.glob(f"*/bin/{name}"))


def _works(python: str) -> bool:
    """Whether it runs: a version manager's stand-in may not."""
    tried = subprocess.run((python, "--version"), capture_output=True, check=False)
    return tried.returncode == 0


TOURS: dict[str, Callable[[str, Path], None]] = {"node": node, "go": go, "python": python}


def main(names: Sequence[str]) -> int:
    """Take the tours of that name, all without one; 1 if one failed."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ksql-clients-") as scratch:
        folder = Path(scratch)
        state = folder / "state"
        server = ServerProcess(folder / "log", ksql__state__dir=str(state), **_EARLIEST)
        try:
            for name in names or TOURS:
                place = folder / name
                place.mkdir()
                try:
                    TOURS[name](server.http.url, place)
                except (subprocess.SubprocessError, OSError, Missing) as error:
                    failed = 1
                    sys.stdout.write(f"{name}: FAILED: {error}\n")
                else:
                    sys.stdout.write(f"{name}: ok\n")
        finally:
            server.stop()
    return failed


_EARLIEST = {"ksql__streams__auto__offset__reset": "earliest"}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
