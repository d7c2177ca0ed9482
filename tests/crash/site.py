"""A broker and a server to be killed, each in processes of its own, over one directory."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from ksql.kafka.embedded.broker import EmbeddedBroker
from tests.crash.points import CONTROL
from tests.kafka.servers import ROOT, Http, ServerProcess

HOOKS = Path(__file__).parent / "hooks"
_BROKER_AWAY_S = 1.0


class Broker:
    """A broker that is killed, and started again at its address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._broker = EmbeddedBroker(folder)
        self.bootstrap = self._broker.start()

    @property
    def pid(self) -> int:
        """The JVM."""
        return self._broker.pid

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        os.kill(self.pid, signal.SIGKILL)

    def restart(self) -> None:
        """Start it over the same data, at the same address."""
        self.stop()
        port = int(self.bootstrap.rpartition(":")[2])
        self._broker = EmbeddedBroker(self._folder, port)
        self._broker.start()

    def stop(self) -> None:
        """End it in good order."""
        self._broker.stop()


class Site:
    """One service id and state directory, and the servers that come and go on it."""

    def __init__(self, broker: Broker, folder: Path, service_id: str, cores: int = 2) -> None:
        """Take ``cores``: how many of Spark's tasks run at once."""
        self.broker = broker
        self.cores = cores
        self.folder = folder
        self.service_id = service_id
        self.control = folder / "control.json"
        self.start_seconds: list[float] = []
        self.orphan_seconds: list[float] = []
        self._server: ServerProcess | None = None

    @property
    def http(self) -> Http:
        """The server's REST interface."""
        assert self._server is not None
        return self._server.http

    def start(self) -> None:
        """Start a server on what is there."""
        with _environment({CONTROL: str(self.control), "PYTHONPATH": f"{ROOT}:{HOOKS}"}):
            self._server = ServerProcess(
                self.folder / "log",
                ksql__state__dir=str(self.folder / "state"),
                ksql__service__id=self.service_id,
                bootstrap__servers=self.broker.bootstrap,
                ksql__spark__master=f"local[{self.cores}]",
                ksql__query__replace__timeout__ms="240000",  # on a slow machine, too
                ksql__query__retry__backoff__initial__ms="1000",
                ksql__query__retry__backoff__max__ms="4000",
            )
        self.start_seconds.append(self._server.start_seconds)

    def order(self, **orders: Any) -> None:
        """What is to happen at the next statement or batch; nothing: all goes its way."""
        temporary = self.control.with_suffix(".new")
        temporary.write_text(json.dumps(orders), encoding="utf-8")
        temporary.replace(self.control)

    @property
    def runs(self) -> bool:
        """Whether a server was started and not ended since."""
        return self._server is not None

    @property
    def server_pid(self) -> int:
        """The server's own process."""
        assert self._server is not None
        return self._server.process.pid

    def jvm_pid(self) -> int:
        """Spark's JVM, once there is one."""
        assert self._server is not None
        return self._server.jvm_pid()

    def family(self) -> list[psutil.Process]:
        """All that the server has started."""
        assert self._server is not None
        return self._server.family()

    def await_dead(self, family: list[psutil.Process]) -> None:
        """Wait until the server has died, and its family with it."""
        assert self._server is not None
        self._server.process.wait(90)
        began = time.monotonic()
        self._server.await_crash(family)
        self.orphan_seconds.append(time.monotonic() - began)
        self._server = None

    def kill(self) -> None:
        """Kill the server."""
        family = self.family()
        os.kill(self.server_pid, signal.SIGKILL)
        self.await_dead(family)

    def kill_jvm(self) -> None:
        """Kill Spark's JVM; the server begins another one."""
        os.kill(self.jvm_pid(), signal.SIGKILL)

    def lose_broker(self) -> None:
        """Kill the broker, and start it again after a second."""
        self.broker.kill()
        time.sleep(_BROKER_AWAY_S)
        self.broker.restart()

    def stop(self) -> None:
        """End the server in good order, if there is one."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def abandon(self) -> None:
        """End the server whatever state it is in."""
        if self._server is not None:
            self._server.kill()
            self._server = None


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Processes started meanwhile have these variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
