"""The service with its HTTP interface inside this process, in a directory of its own."""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ksql.app import KsqlService
from ksql.core import Settings
from ksql.kafka import Admin, KafkaSettings, RegistrySettings
from ksql.spark.session import SparkRuntime
from server.app import behind_http
from server.cli.client import Client
from server.demo.errors import DirectoryNotEmpty, DirectoryUnusable
from server.listeners import bind, parse_listeners, url_of
from server.logs import EventFormatter

_ANYWHERE_FREE = "http://127.0.0.1:0"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Site:
    """A running service: the way in for statements, Kafka and the registry for records."""

    client: Client
    kafka: KafkaSettings
    admin: Admin
    registry: RegistrySettings


@contextlib.contextmanager
def directory(keep: Path | None) -> Iterator[Path]:
    """Give the state's directory: a new one that is removed at the end, or the one to be kept.

    Raises: DirectoryNotEmpty, DirectoryUnusable.
    """
    if keep is not None:
        yield _own(keep)
        return
    folder = Path(tempfile.mkdtemp(prefix="ksql-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _own(keep: Path) -> Path:
    try:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise DirectoryNotEmpty(keep)
    except OSError as problem:
        raise DirectoryUnusable(keep, problem.strerror or str(problem)) from problem
    return keep.absolute()


@contextlib.contextmanager
def service(
    state: Path,
    progress: Callable[[str], None],
    broker: str | None = None,
    runtime: SparkRuntime | None = None,
) -> Iterator[Site]:
    """Bring the service up on a free port; it is stopped at the end, whatever happened.

    A given broker and Spark keep running. Raises: StartError.
    """
    sockets = bind(parse_listeners(_ANYWHERE_FREE))
    url = url_of(sockets[0])
    settings = Settings({"ksql.state.dir": str(state), "listeners": url})
    running = KsqlService(settings, broker=broker, runtime=runtime, progress=progress)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_log_file(state / "logs" / "service.log"))
        for sock in sockets:
            stack.callback(sock.close)
        running.start()
        stack.callback(running.stop)
        stack.enter_context(behind_http(running, sockets))
        client = Client(url)
        stack.callback(client.close)
        yield Site(client, running.node.kafka, running.node.admin, running.node.registry_settings)


@contextlib.contextmanager
def _log_file(path: Path) -> Iterator[None]:
    """Send logs and errors of threads to a file, not between the demo's lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(EventFormatter())
    handler.setLevel(logging.WARNING)
    root = logging.getLogger()
    root.addHandler(handler)
    hook, threading.excepthook = threading.excepthook, _log_death
    try:
        yield
    except Exception:
        _log.exception("demo_failed")
        raise
    finally:
        threading.excepthook = hook
        root.removeHandler(handler)
        handler.close()


def _log_death(died: threading.ExceptHookArgs) -> None:
    value = died.exc_value
    trace = (died.exc_type, value, died.exc_traceback) if value is not None else None
    _log.error("thread_died", exc_info=trace, extra={"who": getattr(died.thread, "name", "")})
