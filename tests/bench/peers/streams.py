"""Kafka Streams in a JVM of its own that stays warm; built from the sources in ``java``."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka.admin import AdminClient

from tests.bench.site import resident_mb

SOURCES = Path(__file__).with_name("java")
BUILD = Path(__file__).resolve().parents[3] / "build" / "peers"
_FETCH = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_STOP_S = 30.0


class PeerFailed(RuntimeError):
    """The application ended with an error, or did not come to the end of its input."""


def build(folder: Path = BUILD, java: Path = SOURCES) -> str:
    """Fetch the libraries with Maven and compile the sources if they are new; the class path.

    Raises: FileNotFoundError without Maven or a JDK; CalledProcessError.
    """
    for tool in ("mvn", "javac"):
        if shutil.which(tool) is None:
            raise FileNotFoundError(f"{tool} is missing: the race needs Maven and a JDK")
    libraries, classes = folder / "lib", folder / "classes"
    sources = sorted(java.glob("*.java"))
    pom = java / "pom.xml"
    _once(
        libraries,
        [pom],
        ["mvn", "-q", "-B", "-f", str(pom), _FETCH, f"-DoutputDirectory={libraries}"],
    )
    _once(
        classes, sources, ["javac", "-cp", f"{libraries}/*", "-d", str(classes), *map(str, sources)]
    )
    return f"{classes}:{libraries}/*"


def _once(folder: Path, inputs: list[Path], command: list[str]) -> None:
    """Run a command that fills a folder, unless it has been run for these inputs."""
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in inputs)).hexdigest()
    stamp = folder / "made-of"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == digest:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subprocess.run(command, check=True)
    stamp.write_text(digest, encoding="utf-8")


@dataclass(frozen=True)
class Moments:
    """When an application was started, had read its input, and had closed; milliseconds."""

    start: int
    quarter: int
    quarter_seen: int
    consumed: int
    seen: int
    closed: int

    def seconds(self) -> float:
        """From its start until everything was flushed and committed."""
        return (self.closed - self.start) / 1000

    def steady_per_s(self) -> float:
        """How many records a second it read behind the first quarter."""
        return (self.seen - self.quarter_seen) * 1000 / max(self.consumed - self.quarter, 1)


class WarmJvm:
    """A JVM that takes orders, one line of JSON each, and answers each with such a line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def cpu_s(self) -> float:
        """The CPU time until now."""
        used = psutil.Process(self.pid).cpu_times()
        return float(used.user + used.system)

    def rss_mb(self) -> int:
        """Its memory now."""
        return resident_mb([psutil.Process(self.pid)])

    def answer(self, name: str, order: Mapping[str, object]) -> dict[str, Any]:
        """Give an order and wait for its answer.

        Raises: PeerFailed.
        """
        writer, reader = self._process.stdin, self._process.stdout
        assert writer is not None
        assert reader is not None
        writer.write(json.dumps(order) + "\n")
        writer.flush()
        answer: dict[str, Any] = json.loads(reader.readline() or '{"failure": "the JVM ended"}')
        if failure := answer.pop("failure", None):
            raise PeerFailed(f"{name}: {failure}")
        return answer


class Peer(WarmJvm):
    """The one that runs Kafka Streams."""

    def __init__(self, process: subprocess.Popen[str], bootstrap: str, state: Path) -> None:
        super().__init__(process)
        self._bootstrap = bootstrap
        self._state = state
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def run(self, **order: str | int) -> Moments:
        """Run an application over its whole input.

        Raises: PeerFailed.
        """
        order |= {"bootstrap": self._bootstrap, "state": str(self._state)}
        answer = self.answer(str(order["shape"]), order)
        if answer["seen"] != order["records"]:
            raise PeerFailed(f"{order['shape']}: {answer['seen']} of {order['records']} records")
        return Moments(**answer)

    def forget(self, application: str) -> None:
        """Delete the topics that an application has made for itself."""
        topics = [
            t for t in self._admin.list_topics(timeout=30).topics if t.startswith(application)
        ]
        for deleted in self._admin.delete_topics(topics).values() if topics else ():
            deleted.result()


@contextlib.contextmanager
def peer(bootstrap: str) -> Iterator[Peer]:
    """Start the JVM for the length of a block."""
    with started(build(), "Peer") as (process, state):
        yield Peer(process, bootstrap, state)


@contextlib.contextmanager
def started(
    class_path: str, main: str, *options: str
) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a JVM with a directory for its state; both are gone behind the block."""
    command = ["java", "-Xmx3g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", *options]
    with (
        tempfile.TemporaryDirectory(prefix="ksql-bench-peer-") as state,
        subprocess.Popen(
            [*command, "-cp", class_path, main],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            yield process, Path(state)
        finally:
            process.terminate()
            process.wait(_STOP_S)
