"""Users: their files, and what a request without one meets."""

from __future__ import annotations

import base64
import hashlib
import io
from functools import partial
from pathlib import Path

import httpx
import pytest

from ksql.core.config import Settings
from ksql.core.files import WatchedFiles
from ksql.http.access import Access
from server import entry, passwords
from server.app import create_app
from server.users import BadUsers, Forbidden, Unauthorized, Users, users_files
from tests.unit.server.fakes import FakeService
from tests.unit.server.web import ask

REALM = "KsqlServer-Props"
ENTRY = """
// who may use ksql
Other { com.example.Module required file="/no/where"; };
KsqlServer-Props {
  org.eclipse.jetty.jaas.spi.PropertyFileLoginModule required
  debug="false"
  file="%s";
};
"""
MD5 = hashlib.md5(b"sesame", usedforsecurity=False).hexdigest()
FILE = f"""
# name: password, roles
ada: love lace, admin, reader
bob: MD5:{MD5}, reader
zoë: p\\u00e4ss:word
"""


@pytest.fixture
def configured(tmp_path: Path) -> dict[str, str]:
    users, jaas = tmp_path / "users.properties", tmp_path / "jaas.conf"
    users.write_text(FILE, encoding="utf-8")
    jaas.write_text(ENTRY % users, encoding="utf-8")
    return {
        "authentication.method": "BASIC",
        "authentication.realm": REALM,
        "java.security.auth.login.config": str(jaas),
    }


def users(configuration: dict[str, str], **more: str) -> Users:
    users_ = Users.of(Settings({**configuration, **more}))
    assert users_ is not None
    return users_


def test_nobody_is_queried_unless_it_is_configured() -> None:
    assert Users.of(Settings({})) is None


@pytest.mark.parametrize(
    ("name", "password", "right"),
    [
        ("ada", "love lace", True),
        ("ada", "love", False),
        ("ada", "", False),
        ("bob", "sesame", True),
        ("bob", MD5, False),
        ("bob", f"MD5:{MD5}", False),
        ("zoë", "päss:word", True),
        ("eve", "", False),
        ("eve", "love lace", False),
    ],
)
def test_a_user_has_a_password(
    configured: dict[str, str], name: str, password: str, right: bool
) -> None:
    refusal = users(configured).refusal(name, password)
    assert (refusal is None) == right
    assert right or isinstance(refusal, Unauthorized)


@pytest.mark.parametrize(
    ("roles", "let_in"),
    [("*", "ada bob zoë"), ("admin", "ada"), ("x, reader", "ada bob"), ("x", "")],
)
def test_a_user_has_roles(configured: dict[str, str], roles: str, let_in: str) -> None:
    users_ = users(configured, **{"authentication.roles": roles})
    words = {"ada": "love lace", "bob": "sesame", "zoë": "päss:word"}
    refusals = {name: users_.refusal(name, word) for name, word in words.items()}
    assert [name for name, refusal in refusals.items() if refusal is None] == let_in.split()
    assert all(isinstance(each, Forbidden) for each in refusals.values() if each is not None)


@pytest.mark.parametrize(
    ("jaas", "says"),
    [
        ("", "has no entry KsqlServer-Props"),
        ("KsqlServer-Props { com.example.Ldap required file='x'; };", "does not name a file"),
        ("KsqlServer-Props { a.PropertyFileLoginModule required; };", "does not name a file"),
        ("KsqlServer-Props { a.PropertyFileLoginModule required file=/no/x; };", "cannot read"),
        (None, "cannot read"),
    ],
)
def test_a_jaas_file_that_leads_nowhere(
    configured: dict[str, str], tmp_path: Path, jaas: str | None, says: str
) -> None:
    path = tmp_path / "other.conf"
    if jaas is not None:
        path.write_text(jaas)
    with pytest.raises(BadUsers, match=says):
        users(configured, **{"java.security.auth.login.config": str(path)})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names no users"),
        ("ada: CRYPT:x", "password of ada"),
        ("ada: OBF:x", "password of ada"),
        ("ada: MD5:sesame", "password of ada"),
        ("ada: MD5:ä", "password of ada"),
        ("ada:", "password of ada"),
        ("ada: ,admin", "password of ada"),
    ],
)
def test_passwords_that_cannot_be_checked(
    configured: dict[str, str], tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "users.properties").write_text(text)
    with pytest.raises(BadUsers, match=says):
        users(configured)


@pytest.mark.parametrize("missing", ["authentication.realm", "java.security.auth.login.config"])
def test_users_without_a_file(configured: dict[str, str], missing: str) -> None:
    with pytest.raises(BadUsers, match="needs"):
        users(configured, **{missing: ""})


# --- over HTTP ------------------------------------------------------------------------------------


def token(text: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(text.encode()).decode()}


def response_of(
    configuration: dict[str, str],
    path: str,
    headers: dict[str, str] | None = None,
    method: str = "GET",
    access: Access | None = None,
) -> tuple[httpx.Response, FakeService]:
    service = FakeService()
    app = create_app(service, users=users(configuration), access=access)
    return ask(service, method, path, app=app, headers=headers), service


@pytest.mark.parametrize(
    "headers",
    [
        {},
        token("ada:love"),
        token("ada"),
        token(":"),
        {"authorization": "Basic %%%"},
        {"authorization": "Basic"},
        {"authorization": "Basic " + base64.b64encode(b"\xff:x").decode()},
        {"authorization": "Bearer YWRhOmxvdmUgbGFjZQ=="},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/info"), ("POST", "/ksql/terminate")])
def test_a_request_without_a_user_is_refused(
    configured: dict[str, str], headers: dict[str, str], method: str, path: str
) -> None:
    answer, service = response_of(configured, path, headers, method)
    assert (answer.status_code, answer.json()) == (
        401,
        {"@type": "generic_error", "error_code": 40100, "message": "Unauthorized"},
    )
    assert answer.headers["www-authenticate"] == f'Basic realm="{REALM}", charset="UTF-8"'
    assert service.calls == []


@pytest.mark.parametrize("user", ["ada:love lace", "bob:sesame", "zoë:päss:word"])
def test_a_user_is_answered(configured: dict[str, str], user: str) -> None:
    assert response_of(configured, "/info", token(user))[0].status_code == 200


@pytest.mark.parametrize("user", ["ada:love lace", "zoë:päss:word"])
def test_service_learns_who_has_sent_a_statement(configured: dict[str, str], user: str) -> None:
    service = FakeService([])
    app = create_app(service, users=users(configured))
    headers = token(user) | {"ksql-user": "bob"}
    ask(service, "POST", "/ksql", app=app, headers=headers, json={"ksql": "SHOW QUERIES;"})
    assert service.user == user.partition(":")[0]


def test_nobody_is_believed_where_nobody_signs_in() -> None:
    service = FakeService([])
    headers = token("ada:x") | {"ksql-user": "bob"}
    ask(service, "POST", "/ksql", headers=headers, json={"ksql": "SHOW QUERIES;"})
    assert service.user == ""


def test_a_user_without_the_role_is_forbidden(configured: dict[str, str]) -> None:
    answer, _ = response_of(
        configured | {"authentication.roles": "x"}, "/info", token("bob:sesame")
    )
    assert (answer.status_code, answer.json()["error_code"]) == (403, 40300)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/healthcheck", 200),
        ("/livez", 200),
        ("/readyz", 200),
        ("/metrics", 401),
        ("/v1/metadata", 200),
        ("/v1/metadata/id", 200),
        ("/v1/metadata/x", 401),
        ("/chc/live", 401),
        ("/docs", 401),
        ("/openapi.json", 401),
        ("/nowhere", 401),
    ],
)
def test_some_paths_need_no_user(configured: dict[str, str], path: str, status: int) -> None:
    assert response_of(configured, path)[0].status_code == status


def test_the_api_page_says_that_users_are_requested(configured: dict[str, str]) -> None:
    document = response_of(configured, "/openapi.json", token("bob:sesame"))[0].json()
    assert document["security"] == [{"user": []}]
    assert document["components"]["securitySchemes"]["user"]["scheme"] == "basic"
    assert "security" not in ask(FakeService(), "GET", "/openapi.json").json()


def test_other_paths_may_be_opened(configured: dict[str, str]) -> None:
    configured |= {"authentication.skip.paths": "/info, /chc/*, /metrics"}
    paths = ("/info", "/chc/live", "/metrics", "/")
    statuses = {path: response_of(configured, path)[0].status_code for path in paths}
    assert statuses == {"/info": 200, "/chc/live": 200, "/metrics": 200, "/": 401}


def test_a_page_may_ask_beforehand_without_a_user(configured: dict[str, str]) -> None:
    access = Access(origins=frozenset(["https://ui.example"]))
    headers = {
        "origin": "https://ui.example",
        "access-control-request-method": "POST",
    }
    assert response_of(configured, "/ksql", headers, "OPTIONS", access)[0].status_code == 200
    refused = response_of(configured, "/ksql", {"origin": "https://ui.example"}, "POST", access)[0]
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == "https://ui.example"


# --- hashed passwords, and files that change

HASHED = passwords.hashed("open sesame", b"salt of a test")


@pytest.mark.parametrize(
    ("password", "right"), [("open sesame", True), ("open", False), ("", False), (HASHED, False)]
)
def test_password_may_be_hashed(password: str, right: bool) -> None:
    known = Users("realm", {"ada": (HASHED, frozenset())})
    assert known.takes_long("ada", password)
    assert (known.refusal("ada", password) is None) == right
    assert known.takes_long("ada", password) != right
    assert (known.refusal("ada", password) is None) == right


def test_hashes_have_salts() -> None:
    one, other = passwords.hashed("x"), passwords.hashed("x")
    assert one != other
    assert passwords.matches("x", one)
    assert "," not in one  # which would begin a role


def test_an_unknown_name_takes_as_long_as_a_known_one() -> None:
    known = Users("realm", {"ada": (HASHED, frozenset()), "bob": ("plain", frozenset())})
    assert known.takes_long("eve", "open sesame")
    assert isinstance(known.refusal("eve", "open sesame"), Unauthorized)
    assert not Users("realm", {"bob": ("plain", frozenset())}).takes_long("eve", "")


@pytest.mark.parametrize(
    "stored",
    [
        "SCRYPT:1:2",
        "SCRYPT:3:8:1:AAAA:AAAA",
        HASHED[:-4],
        HASHED.replace("16384", "1073741824"),
        HASHED.replace("16384", "0"),
        "$2y$10$abc",
        "$argon2id$v=19$m=1$x",
        "MD5:12",
    ],
)
def test_hashes_that_cannot_be_read_are_refused(configured: dict[str, str], stored: str) -> None:
    file(configured).write_text(f"ada: {stored}, admin", encoding="utf-8")
    with pytest.raises(BadUsers, match="password of ada") as caught:
        users(configured)
    assert "`ksql password`" in caught.value.text()


def file(configured: dict[str, str]) -> Path:
    return Path(configured["java.security.auth.login.config"]).with_name("users.properties")


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.users.WatchedFiles", partial(WatchedFiles, look_s=0))


def test_removed_user_is_refused(configured: dict[str, str], looking: None) -> None:
    known = users(configured)
    assert known.refusal("ada", "love lace") is None
    file(configured).write_text(f"bob: {HASHED}", encoding="utf-8")
    assert isinstance(known.refusal("ada", "love lace"), Unauthorized)
    assert known.refusal("bob", "open sesame") is None
    file(configured).write_text("bob: another", encoding="utf-8")
    assert isinstance(known.refusal("bob", "open sesame"), Unauthorized)


@pytest.mark.parametrize("text", ["", "ada: MD5:zz", None])
def test_a_file_that_cannot_be_used_leaves_the_users(
    configured: dict[str, str], looking: None, caplog: pytest.LogCaptureFixture, text: str | None
) -> None:
    known, path = users(configured), file(configured)
    path.unlink() if text is None else path.write_text(text, encoding="utf-8")
    for _ in range(3):
        assert known.refusal("ada", "love lace") is None
    assert [each.message for each in caplog.records] == ["users_not_read"]
    path.write_text("eve: x", encoding="utf-8")
    assert known.refusal("eve", "x") is None


def test_the_files_are_not_looked_at_for_each_request(configured: dict[str, str]) -> None:
    now = [0.0]
    files = users_files(configured["java.security.auth.login.config"], REALM, lambda: now[0])
    file(configured).write_text("eve: x", encoding="utf-8")
    assert "ada" in files.current()
    now[0] += 1
    assert "eve" in files.current()


def test_hashes_are_compared_next_to_the_loop(configured: dict[str, str]) -> None:
    file(configured).write_text(f"ada: {HASHED}, admin", encoding="utf-8")
    known = users(configured)
    for password, status in (("open sesame", 200), ("open", 401), ("open sesame", 200)):
        app = create_app(FakeService(), users=known)
        answer = ask(FakeService(), "GET", "/info", app=app, auth=("ada", password))
        assert answer.status_code == status


@pytest.mark.parametrize(("given", "status"), [("open sesame\n", 0), ("\n", 1)])
def test_command_prints_the_line_of_the_file(
    given: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    assert entry.main(["password"]) == status
    printed = capsys.readouterr().out.strip()
    assert passwords.matches("open sesame", printed) == (status == 0)
