"""``docker compose up`` without containers: the file's own commands, as a user without rights.

The image is this machine's Python and Java, whose packages are root's. A service's volumes are
folders that its user may write to, all others are not; the network is the loopback interface.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from ksql.core.process.jars import cache_dir
from tests import composed
from tests.kafka.cluster import free_port
from tests.reaper import MARKS
from tests.waits import PATIENCE_S, NotYet, await_true

USER: Final = 65_534
_MARK: Final = "KSQL_TEST_COMPOSED"
_SELF: Final = "localhost|0\\.0\\.0\\.0"
_HERE: Final = "127.0.0.1"
_BIN: Final = Path(sys.executable).parent
_RIGHTS: Final = "dac_read_search"


def as_nobody() -> list[str]:
    """The words that start a command without any rights, as Compose's ``cap_drop`` does.

    Where only root may enter the folders of Python, the right to read all files is left.
    """
    words = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"]
    bare = [*words, "--bounding-set=-all", "--inh-caps=-all"]
    # setpriv itself still has root's rights while it looks for a program
    command = [*bare, "env", sys.executable, "-c", ""]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        return bare
    sets = ("bounding-set", "inh-caps", "ambient-caps")
    return [*words, *(f"--{each}=-all,+{_RIGHTS}" for each in sets)]


def hindrance() -> str:
    """Why the commands cannot be run here as another user; empty if they can."""
    if os.geteuid() != 0:
        return "only root may start processes as another user"
    return "" if shutil.which("setpriv") else "needs the command setpriv of util-linux"


class Composed:
    """The services of the file that run our image, as processes of this machine.

    ``elsewhere`` has the addresses of all others, such as ``kafka:9092``.
    """

    def __init__(
        self, folder: Path, elsewhere: Mapping[str, str], secrets: Mapping[str, str]
    ) -> None:
        self._file = composed.read()
        self.services: dict[str, dict[str, Any]] = self._file["services"]
        self._folder = folder
        self._addresses = dict(elsewhere)
        self._mark = uuid.uuid4().hex
        self._nobody = as_nobody()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._lay_out(secrets)

    def _lay_out(self, secrets: Mapping[str, str]) -> None:
        for path in ("image/var/lib/ksql", "image/home", "secrets", "logs"):
            (self._folder / path).mkdir(parents=True)
        for name in self._file["volumes"]:
            volume = self._folder / "volumes" / name
            volume.mkdir(parents=True, mode=0o700)
            os.chown(volume, USER, USER)
        for name, text in secrets.items():
            (self._folder / "secrets" / name).write_text(text)

    def up(self) -> None:
        """Start each service once those that it needs are healthy."""
        for name in composed.in_order(self.services):
            if self.services[name]["image"] == composed.OWN:
                self.start(name, self.words(name, self.services[name]["command"]))
                self.await_healthy(name)

    def start(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a service's command in its surroundings."""
        mounted = self._mounts(name).get("/var/lib/ksql", self._folder / "image/var/lib/ksql")
        with self.log(name).open("ab") as log:
            self.running[name] = subprocess.Popen(
                [*self._nobody, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=mounted,
                env=self._environment(name),
            )
        return self.running[name]

    def log(self, name: str) -> Path:
        """What a service has printed."""
        return self._folder / "logs" / f"{name}.log"

    def await_healthy(self, name: str) -> None:
        """Wait as Compose does; a service that has ended will not become healthy."""

        def healthy() -> bool:
            process = self.running[name]
            assert process.poll() is None, self.log(name).read_text()
            if why := self.illness(name):
                raise NotYet(f"{why}\n{self.log(name).read_text()}")
            return True

        await_true(f"{name} is healthy", healthy)

    def illness(self, name: str) -> str:
        """What the check of a service says; empty if it finds no fault."""
        check = [*self._nobody, *self._check(name)]
        env = self._environment(name)
        done = subprocess.run(
            check, capture_output=True, text=True, env=env, check=False, timeout=PATIENCE_S
        )
        return (done.stderr or f"status {done.returncode}") if done.returncode else ""

    def down(self) -> None:
        """End all in good order, the last first; nothing of them is left."""
        while self.running:
            name, process = self.running.popitem()
            process.terminate()
            status = process.wait(PATIENCE_S)
            # Spark's daemons have no other way to end
            exit_code = 0 if name == "server" else 128 + signal.SIGTERM
            assert status == exit_code, f"{name}: {status}\n{self.log(name).read_text()}"
        await_true("nothing is left", lambda: not self.processes())

    def kill(self) -> None:
        """End whatever a test that failed has left."""
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for started in self.running.values():
            started.wait(PATIENCE_S)

    def processes(self) -> list[psutil.Process]:
        """All that came from the services, whoever its parent is now."""
        return list(self._marked())

    def _marked(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                ours = process.environ().get(_MARK) == self._mark
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    yield process

    def url(self, name: str, port: int, scheme: str = "http") -> str:
        """Where a service's port is."""
        return f"{scheme}://{self._address(name, str(port))}"

    def words(self, name: str, command: Sequence[str]) -> list[str]:
        """A command with the addresses and folders of this machine."""
        local = [self._local(name, word) for word in command]
        return [
            _HERE if before == "--host" and word in self.services else word
            for before, word in zip(["", *command], local, strict=False)
        ]

    def _check(self, name: str) -> list[str]:
        kind, *words = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return self.words(name, words)

    def _environment(self, name: str) -> dict[str, str]:
        given = self.services[name].get("environment", {})
        image = {
            "PATH": self._path(),
            "HOME": str(self._folder / "image/home"),
            "PYTHONPATH": str(composed.ROOT),
            "PYTHONUNBUFFERED": "1",
            # a shell does not look for programs in folders that only the right opens
            "PYSPARK_PYTHON": sys.executable,
            "KSQL_CACHE_DIR": str(cache_dir()),
            "SPARK_LOCAL_IP": _HERE,
            MARKS: os.environ.get(MARKS, ""),
            _MARK: self._mark,
        }
        if java := os.environ.get("JAVA_HOME"):
            image["JAVA_HOME"] = java
        return image | {each: self._local(name, str(value)) for each, value in given.items()}

    def _path(self) -> str:
        return f"{_BIN}{os.pathsep}{os.environ['PATH']}"

    def _mounts(self, name: str) -> dict[str, Path]:
        pairs = (mount.split(":") for mount in self.services[name].get("volumes", ()))
        return {target: self._folder / "volumes" / volume for volume, target in pairs}

    def _local(self, name: str, text: str) -> str:
        names = "|".join([*self.services, _SELF])
        text = re.sub(
            rf"(?<![\w.-])({names})([:/])(\d+)",
            lambda match: match[2].join(self._address(match[1], match[3], name).split(":")),
            text,
        )
        text = re.sub(rf"=({'|'.join(self.services)})$", f"={_HERE}", text)
        text = re.sub(r"^\d{4,5}$", lambda match: self._port(name, match[0]), text)
        text = text.replace(composed.SECRETS, f"{self._folder / 'secrets'}/")
        for target, volume in self._mounts(name).items():
            text = re.sub(rf"(?<![\w.]){target}(?=/|$)", str(volume), text)
        return text

    def _address(self, host: str, port: str, name: str = "") -> str:
        owner = name if re.fullmatch(_SELF, host) else host
        key = f"{owner}:{port}"
        if key not in self._addresses:
            self._addresses[key] = f"{_HERE}:{free_port()}"
        return self._addresses[key]

    def _port(self, name: str, port: str) -> str:
        return self._address(name, port).rsplit(":", 1)[1]


@contextlib.contextmanager
def composed_services(
    folder: Path, elsewhere: Mapping[str, str], secrets: Mapping[str, str]
) -> Iterator[Composed]:
    """The services for the length of a block; none has been started."""
    services = Composed(folder, elsewhere, secrets)
    try:
        yield services
    finally:
        services.kill()
