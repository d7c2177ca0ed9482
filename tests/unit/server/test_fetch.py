from __future__ import annotations

import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from rich.progress import Progress

from ksql.core.process.jars import Jar
from server.tools import fetch as module
from server.tools.fetch import FetchFailed, WrongChecksum, fetch, fetch_all, from_repository

BODY = b"a jar"
JAR = Jar("g:a:1", hashlib.sha256(BODY).hexdigest(), len(BODY), "spark")


class Repository:
    """Serves the given answers one after the other; an exception is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def __call__(self, jar, staging):
        answer = self.answers.pop(0)
        path = staging / "deep" / jar.file_name
        path.parent.mkdir()
        path.write_bytes(BODY[:2] if isinstance(answer, Exception) else answer)
        if isinstance(answer, Exception):
            raise answer
        return path


def test_a_verified_file_gets_its_name(tmp_path):
    fetch(JAR, tmp_path, Repository(BODY))
    assert [path.name for path in tmp_path.iterdir()] == ["a-1.jar"]
    assert (tmp_path / "a-1.jar").read_bytes() == BODY


def test_a_passing_failure_is_tried_again(tmp_path):
    fetch(JAR, tmp_path, Repository(FetchFailed(JAR, "reset"), b"cut", BODY))
    assert (tmp_path / "a-1.jar").read_bytes() == BODY


@pytest.mark.parametrize(
    ("answer", "error"), [(FetchFailed(JAR, "reset"), FetchFailed), (b"other", WrongChecksum)]
)
def test_a_lasting_failure_leaves_nothing_behind(tmp_path, answer, error):
    with pytest.raises(error, match=r"g:a:1"):
        fetch(JAR, tmp_path, Repository(answer, answer, answer))
    assert list(tmp_path.iterdir()) == []


def test_only_what_is_missing_is_fetched(tmp_path):
    repository = Repository(BODY)
    for _ in range(2):
        with Progress(disable=True) as progress:
            fetch_all([JAR], tmp_path / "jars", progress, repository)
    assert repository.answers == []


def test_first_failed_download_ends_all(tmp_path):
    with Progress(disable=True) as progress, pytest.raises(FetchFailed):
        fetch_all([JAR], tmp_path, progress, Repository(*[FetchFailed(JAR, "no route")] * 3))


def test_an_unreachable_repository_is_a_message(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KSQL_MAVEN_REPOSITORY", "http://127.0.0.1:9/none")
    monkeypatch.setenv("KSQL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "_TRIES", 1)
    monkeypatch.setattr(module, "locked", lambda: (JAR,))
    assert module.main() == 1
    output = capsys.readouterr().err
    assert "error: g:a:1 could not be downloaded" in output
    assert "make setup" in output


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A Maven repository over HTTP; yields its folder."""
    root = tmp_path / "repository"
    root.mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=str(root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        monkeypatch.setenv("KSQL_MAVEN_REPOSITORY", address)
        yield root
        server.shutdown()


def test_a_repository_of_ones_own(repository, tmp_path):
    jar = Jar("org.x.y:a-b:1.2", "", 5, "spark")
    home = repository / "org/x/y/a-b/1.2"
    home.mkdir(parents=True)
    (home / "a-b-1.2.jar").write_bytes(BODY)
    path = from_repository(jar, tmp_path)
    assert (path, path.read_bytes()) == (tmp_path / "a-b-1.2.jar", BODY)


@pytest.mark.usefixtures("repository")
def test_a_repository_without_the_jar(tmp_path):
    with pytest.raises(FetchFailed) as caught:
        from_repository(JAR, tmp_path)
    assert "404" in caught.value.detail


def test_a_repository_that_is_not_there(tmp_path, monkeypatch):
    for address in ("http://127.0.0.1:1/maven2", "no address"):
        monkeypatch.setenv("KSQL_MAVEN_REPOSITORY", address)
        with pytest.raises(FetchFailed, match=r"g:a:1"):
            from_repository(JAR, tmp_path)
