"""A process of another program that lives as long as this one, and no longer."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING, BinaryIO, Literal

from ksql.core.process import supervise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ksql.core.process.lock import FileLock

_KILL_S = 3.0


class Child:
    """A command under supervision: a small process of its own ends it when we are gone.

    It is in a session of its own, so that a signal to our process group is ours alone to handle.
    """

    def __init__(self, supervisor: subprocess.Popen[bytes], patience_s: float) -> None:
        self._supervisor = supervisor
        self._patience_s = patience_s
        assert supervisor.stdout is not None  # noqa: S101 ``start`` asked for it
        with supervisor.stdout as pipe:
            self.pid = int(pipe.readline() or b"0")
        """The command's process id; 0 if it could not even be tried."""

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        *,
        output: BinaryIO,
        lock: FileLock,
        patience_s: float,
        asked_by: Literal["stdin", "signal"] = "signal",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Child:
        """Start it; what it says goes to ``output``.

        ``lock`` is held, and from now on held by the command and its supervisor as well. It is
        asked to end by closing its standard input or by SIGTERM, and killed after the patience.
        """
        script = [sys.executable, "-I", "-S", supervise.__file__, str(patience_s), asked_by]
        supervisor = subprocess.Popen(  # noqa: S603 our own script and command
            [*script, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            pass_fds=(lock.fd,),
            start_new_session=True,
            cwd=cwd,
            env=None if env is None else dict(env),
        )
        return cls(supervisor, patience_s)

    @property
    def alive(self) -> bool:
        return self._supervisor.poll() is None

    @property
    def ending(self) -> str:
        """How it went, in words; empty while it runs."""
        status = self._supervisor.poll()
        if status is None:
            return ""
        if status < 0:
            return f"its supervisor was ended by signal {-status}"
        return f"ended by signal {status - 128}" if status > 128 else f"ended with status {status}"

    def ask(self) -> None:
        """Have it end in good order; does not wait."""
        if self._supervisor.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._supervisor.stdin.close()

    def end(self) -> None:
        """Have it end, and wait until it has; what does not end in time is killed."""
        self.ask()
        self._await(self._patience_s + _KILL_S)

    def kill(self) -> None:
        """End it at once."""
        stdin = self._supervisor.stdin
        if stdin is not None and not stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                stdin.write(b"!")
                stdin.flush()
            self.ask()
            self._await(_KILL_S)
        elif self.alive:
            self._supervisor.kill()
            self._supervisor.wait()

    def _await(self, patience_s: float) -> None:
        try:
            self._supervisor.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()  # its child dies with it
            self._supervisor.wait()
