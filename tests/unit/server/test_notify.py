"""Reports to systemd."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest

from server.notify import notify


@pytest.mark.parametrize("kind", ["file", "abstract"])
def test_the_state_is_sent_to_the_socket(kind: str, tmp_path: Path) -> None:
    given = str(tmp_path / "n") if kind == "file" else f"@{tmp_path.name}-notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(given.replace("@", "\0"))
        notify("READY=1", {"NOTIFY_SOCKET": given})
        assert sock.recv(100) == b"READY=1"


def test_nothing_is_sent_without_a_socket() -> None:
    notify("READY=1", {})


def test_a_socket_that_is_gone_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        notify("STOPPING=1", {"NOTIFY_SOCKET": str(tmp_path / "none")})
    assert [record.message for record in caplog.records] == ["systemd_not_notified"]
