from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from ksql.control.statements.entities import Entity
from ksql.core.config import FixedProperty
from ksql.core.errors import ServerError
from ksql.http.tls import CLIENTS, KEYSTORE, TRUSTED, TRUSTED_TYPE, TYPE, server_context
from server import entry
from server.app import create_app
from server.cli.commands import cli_version
from server.cli.main import main
from server.users import Users
from tests.unit.http.clients import hosted
from tests.unit.server.fakes import FakeService, FakeStream, created, rows


def test_execute(url: str, service: FakeService, capsys: pytest.CaptureFixture[str]) -> None:
    service.answer = [created()]
    arguments = ["-d", "a=1", "--define", "b='it''s'", "-e", "X;"]
    assert entry.main([url, *arguments]) == 0
    assert capsys.readouterr().out == "Stream created\n"
    assert service.calls == [("X;", {}, {"a": "1", "b": "it's"})]


def test_a_failure_is_in_the_exit_status(
    url: str, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    service.answer = ServerError("gone")
    assert main([url, "-e", "X; Y;"]) == 1
    assert capsys.readouterr() == ("", "gone\nstatement 1 of 2 failed, 1 not run\n")
    assert len(service.calls) == 1
    assert main(["http://127.0.0.1:1", "-e", "X;"]) == 1


def test_a_file_and_its_limits(
    url: str, service: FakeService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service.stream = lambda: FakeStream([rows((1, "a"), (2, "b"))])
    script = tmp_path / "s.sql"
    script.write_text("select * from s emit changes;")
    options = ["--output", "json", "--query-row-limit", "1", "--query-timeout", "60000"]
    assert main([url, "-f", str(script), *options]) == 0
    assert json.loads(capsys.readouterr().out) == {"row": {"columns": [1, "a"]}}
    assert main([url, "-f", str(tmp_path / "none.sql")]) == 1


def test_standard_input(url: str, service: FakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("A;\nexit;\nB;"))
    assert main([url]) == 0
    assert [call[0] for call in service.calls] == ["A;"]


def test_a_pipe_continues_behind_an_error_and_a_file_does_not(
    url: str, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(text: str) -> list[Entity]:
        if text == "BAD;":
            raise ServerError("gone")
        return []

    service.answer = answer
    text = "version\nA;\nBAD;\nC\n;"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main([url]) == 0
    assert [call[0] for call in service.calls] == ["A;", "BAD;", "C\n;"]
    service.calls.clear()
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main([url, "-f", "-"]) == 1
    assert [call[0] for call in service.calls] == ["A;", "BAD;"]
    service.calls.clear()
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main([url, "-f", "-", "--from-statement", "4"]) == 0
    assert [call[0] for call in service.calls] == ["C\n;"]


def test_ctrl_c_has_its_own_exit_status(
    url: str, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("server.cli.client.Client.execute", press)
    assert main([url, "-e", "X;"]) == 130


def test_a_reader_that_leaves_is_no_error(
    url: str, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    service.stream = lambda: FakeStream([rows(*[(n, "x") for n in range(99)])], "pull")
    with os.fdopen(writing, "w", buffering=1) as out:
        monkeypatch.setattr("sys.stdout", out)
        assert main([url, "-e", "select;"]) == 1


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        entry.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"ksql {cli_version()}\n"


def test_the_server_as_an_option_and_timing(
    url: str, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    service.answer = [created()]
    assert entry.main(["--server", url, "--timing", "-e", "X;"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Stream created\nTime: ")
    assert shown.err == ""


def test_a_file_of_properties_for_the_session(
    url: str, service: FakeService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(text: str) -> list[Entity]:
        if "listeners" in text:
            raise FixedProperty("listeners")
        return []

    service.answer = answer
    file = tmp_path / "cli.properties"
    file.write_text("# mine\nksql.streams.auto.offset.reset=earliest\nlisteners=http://x:1\n")
    assert main([url, "--config-file", str(file), "-e", "X;"]) == 0
    assert service.calls[-1] == ("X;", {"ksql.streams.auto.offset.reset": "earliest"}, {})
    assert "not set for this session: listeners: Cannot override" in capsys.readouterr().err
    assert main(["http://127.0.0.1:1", "--config-file", str(file), "-e", "X;"]) == 1
    assert capsys.readouterr().err.count("no answer") == 1
    service.answer = ServerError("gone")
    assert main([url, "--config-file", str(file), "-e", "X;"]) == 1
    assert capsys.readouterr().err == "gone\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--config-file", "/no/such/file"], "cannot read /no/such/file: No such file"),
        (["--confluent-api-key", "k", "--confluent-api-secret", "s"], "--user, --password"),
        (["-t", "token"], "tokens of Confluent Cloud mean nothing here"),
        (["localhost:8088"], "not a server's URL"),
        (["-d", "x"], "name=value"),
        (["-p", "secret"], "needs a user"),
        (["--query-timeout", "0"], "number above 0"),
        (["-e", "x", "-f", "y"], "not allowed with"),
        (["--output", "XML"], "invalid choice: 'xml' (choose from 'table', 'json', 'csv', "),
        (["http://a", "--server", "http://b"], "given twice"),
        (["--server", "b"], "not a server's URL"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert says in capsys.readouterr().err


# --- certificates and users -----------------------------------------------------------------------


@pytest.fixture
def strict(service: FakeService, tmp_path: Path) -> Iterator[list[str]]:
    """A server that asks for a certificate and a user; the options that it asks for."""
    authority, client = trustme.CA(), tmp_path / "client.pem"
    trusted, own = tmp_path / "authority.pem", tmp_path / "server.pem"
    trusted.write_bytes(authority.cert_pem.bytes())
    for path in (client, own):
        issued = authority.issue_cert("localhost")
        path.write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    properties = {KEYSTORE: str(own), TYPE: "PEM", TRUSTED: str(trusted), TRUSTED_TYPE: "PEM"}
    tls = server_context({**properties, CLIENTS: "required"})
    app = create_app(service, users=Users("ksql", {"ada": ("love", frozenset())}))
    with hosted(app, tls) as port:
        options = ["--cacert", str(trusted), "--cert", str(client), "-u", "ada", "-p", "love"]
        yield [f"https://localhost:{port}", *options]
    app.state.context.release()


def test_a_server_that_asks_for_all(
    service: FakeService, strict: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    service.answer = [created()]
    assert main([*strict, "-e", "X;"]) == 0
    assert capsys.readouterr().out == "Stream created\n"
    for without, says in (("--cert", ""), ("--cacert", "certificate"), ("-u", "")):
        at = strict.index(without)
        count = 4 if without == "-u" else 2
        assert main([*strict[:at], *strict[at + count :], "-e", "X;"]) == 1
        assert says in capsys.readouterr().err
    assert len(service.calls) == 1


def test_certificates_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--cacert", "--cert"):
        with pytest.raises(SystemExit):
            main([option, "/no/such/file", "-e", "X;"])
        assert "cannot use the certificates" in capsys.readouterr().err
