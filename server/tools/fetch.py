"""Downloads the locked jars into the user's cache, each verified by its checksum.

Run by the set-up as ``python -m server.tools.fetch``; needs the installed dependencies.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import httpx
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from ksql.core import StartError
from ksql.core.process import Jar, jar_dir, locked, present, sha256

_CENTRAL = "https://repo1.maven.org/maven2"
_AT_ONCE = 4
_TRIES = 3
_TIMEOUT_SECONDS = 60

Download = Callable[[Jar, Path], Path]


class FetchFailed(StartError):
    """A jar could not be downloaded."""

    def __init__(self, jar: Jar, reason: str) -> None:
        super().__init__(
            f"{jar.coordinate} could not be downloaded",
            detail=reason,
            hint="Check the network (or proxy) and run `make setup` again; what is complete is "
            "kept. KSQL_MAVEN_REPOSITORY names another repository.",
        )


class WrongChecksum(StartError):
    """A repository served something else than what was locked."""

    def __init__(self, jar: Jar, got: str) -> None:
        super().__init__(
            f"{jar.coordinate} has a wrong checksum",
            detail=f"Expected SHA-256 {jar.sha256}, got {got}. The download was thrown away.",
            hint="Run `make setup` again; if it happens again, do not trust the repository.",
        )


def from_repository(jar: Jar, staging: Path) -> Path:
    """Download one jar into the staging folder; return its path.

    Raises: FetchFailed when the repository does not serve it.
    """
    repository = os.environ.get("KSQL_MAVEN_REPOSITORY") or _CENTRAL
    url = f"{repository.rstrip('/')}/{jar.path}"
    path = staging / jar.file_name
    try:
        with (
            httpx.stream("GET", url, timeout=_TIMEOUT_SECONDS, follow_redirects=True) as answer,
            path.open("wb") as out,
        ):
            answer.raise_for_status()
            for part in answer.iter_bytes():
                out.write(part)
    except (OSError, httpx.HTTPError, httpx.InvalidURL) as error:
        raise FetchFailed(jar, str(error) or type(error).__name__) from error
    return path


def fetch(jar: Jar, folder: Path, download: Download = from_repository) -> None:
    """Put one verified jar into the folder; under its name only once it is complete.

    Raises: FetchFailed or WrongChecksum after a few tries.
    """
    for attempt in range(1, _TRIES + 1):
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as staging:
            try:
                path = download(jar, Path(staging))
                got = sha256(path)
                if got != jar.sha256:
                    raise WrongChecksum(jar, got)
            except (FetchFailed, WrongChecksum):
                if attempt == _TRIES:
                    raise
                continue
            path.chmod(0o644)
            path.replace(folder / jar.file_name)
            return


def fetch_all(
    jars: Sequence[Jar], folder: Path, progress: Progress, download: Download = from_repository
) -> None:
    """Fetch what is missing, a few files at a time.

    Raises: what ``fetch`` raises, once the downloads already under way have ended.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [jar for jar in jars if not present(jar, folder)]
    if not missing:
        return
    bar = progress.add_task("jars", total=sum(jar.size_bytes for jar in missing))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        running = {pool.submit(fetch, jar, folder, download): jar for jar in missing}
        for done in as_completed(running):
            if (error := done.exception()) is not None:
                pool.shutdown(wait=False, cancel_futures=True)
                raise error
            progress.advance(bar, running[done].size_bytes)


def main() -> int:
    """Fetch both sets; print a message and return 1 when that fails."""
    columns = (TextColumn("      {task.description}"), BarColumn(), DownloadColumn())
    try:
        with Progress(*columns, console=Console(stderr=True)) as progress:
            fetch_all(locked(), jar_dir(), progress)
    except StartError as error:
        sys.stderr.write(f"error: {error.text()}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
