"""The file of rights: what it says, and how it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksql.control.access.rights import Right
from server.rightsfile import BadRights, parse_rights, read_rights, rights_file

TEXT = """
# who may do what
role reader may read on PUBLIC_*, `quoted Name`, topic:rides*
role loader may write on rides
role modeler may read on *
role modeler may define on MODEL_*, topic:model-*
role ops may operate
role boss may admin

user ada is modeler, ops
certificate CN=loader, O=Example\\, Inc is robot
user robot is loader
"""


def parsed(text: str = TEXT):
    return parse_rights(text, "rights.conf", ["ada", "bob"])


def test_roles_come_from_both_files() -> None:
    rights = parsed()
    ada = rights.grants("ada", ["reader"])
    assert ada.may(Right.READ, name="SECRET")
    assert ada.may(Right.READ, "topic", "rides.eu")
    assert ada.may(Right.DEFINE, "topic", "model-1")
    assert ada.may(Right.OPERATE)
    assert not ada.may(Right.WRITE, name="RIDES")
    bob = rights.grants("bob", ["reader", "of no rule"])
    assert bob.may(Right.READ, name="quoted Name")
    assert not bob.may(Right.READ, name="QUOTED NAME")
    assert not bob.may(Right.READ, name="RIDES")
    assert rights.grants("eve", []).empty
    assert rights.grants("eve", ["boss"]).may(Right.ADMIN)
    assert rights.grants("robot", []).may(Right.WRITE, name="RIDES")


@pytest.mark.parametrize(
    ("subject", "user"),
    [
        ("O=Example\\, Inc,CN=loader", "robot"),
        ("CN=loader,O=Example\\, Inc", "robot"),
        ("CN=loader", ""),
        ("CN=Loader,O=Example\\, Inc", ""),
        ("CN=loader,O=Example,OU= Inc", ""),
        ("", ""),
    ],
)
def test_a_certificate_is_a_user_s_if_its_whole_subject_is(subject: str, user: str) -> None:
    assert parsed().user_of(subject) == user


@pytest.mark.parametrize(
    ("line", "fact", "hint"),
    [
        ("role reader may raed on *", "there is no right raed", "The rights are read, write"),
        ("role reader may read", "read does not say on what", "Example: "),
        ("role reader may admin on X", "admin is on everything", "Leave out"),
        ("role reader may read on A,,B", "nothing between two commas", "A pattern is"),
        ("role reader may read on A*B", "cannot be read as a pattern: A*B", "A pattern is"),
        ("role reader may read on group:x", "cannot be read as a pattern", "A pattern is"),
        ("role reader may read on topic:", "cannot be read as a pattern", "A pattern is"),
        ("reader: read", "cannot be read: reader: read", "A line is one of"),
        ("user aad is ops", "there is no user aad", "Did you mean ada?"),
        ("user nobody is ops", "there is no user nobody", "Add its password"),
        ("user bob is opps", "there is no role opps", "Did you mean ops?"),
        ("user bob is ops,", "cannot be read as a list of roles", "A line is one of"),
        ("certificate loader is bob", "cannot be read as a certificate's subject", "openssl"),
        ("certificate O=Example\\, Inc,CN=loader is bob", "another line has this", "Remove one"),
    ],
)
def test_a_line_that_means_nothing_is_refused_with_its_number(
    line: str, fact: str, hint: str
) -> None:
    with pytest.raises(BadRights) as caught:
        parsed(TEXT + line)
    assert f"rights.conf, line {TEXT.count(chr(10)) + 1}: " in caught.value.message
    assert fact in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("data", "says"),
    [(None, "cannot read it"), (b"role \xff", "UTF-8"), (b"#" * 10_000_001, "longer than")],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, data: bytes | None, says: str) -> None:
    path = tmp_path / "rights.conf"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(BadRights, match=says):
        read_rights(str(path), [])


def test_a_changed_file_counts_and_a_bad_one_does_not(tmp_path: Path, caplog) -> None:
    path, now = tmp_path / "rights.conf", [0.0]
    path.write_text("role r may read on A", encoding="utf-8")
    rights = rights_file(str(path), tuple, lambda: now[0])
    path.write_text("role r may read on A, B", encoding="utf-8")
    assert not rights.current().grants("x", ["r"]).may(Right.READ, name="B")
    now[0] = 2.0
    assert rights.current().grants("x", ["r"]).may(Right.READ, name="B")
    path.write_text("role r may everything", encoding="utf-8")
    now[0] = 4.0
    assert rights.current().grants("x", ["r"]).may(Right.READ, name="B")
    assert [record.message for record in caplog.records] == ["rights_not_read"]
    path.unlink()
    now[0] = 6.0
    assert rights.current().grants("x", ["r"]).may(Right.READ, name="B")


def test_a_file_that_names_a_user_of_a_moment_later_counts_then(tmp_path: Path, caplog) -> None:
    """Both files are changed together, and each is looked at in its own moment."""
    path, now = tmp_path / "rights.conf", [0.0]
    path.write_text("role r may read on A", encoding="utf-8")
    users = ["ada"]
    rights = rights_file(str(path), lambda: users, lambda: now[0])
    path.write_text("role r may read on B\nuser bob is r", encoding="utf-8")
    for now[0] in (2.0, 4.0):
        assert rights.current().grants("x", ["r"]).may(Right.READ, name="A")
    assert [record.message for record in caplog.records] == ["rights_not_read"]
    users.append("bob")
    now[0] = 6.0
    assert rights.current().grants("bob", []).may(Right.READ, name="B")
    assert not rights.current().grants("x", ["r"]).may(Right.READ, name="A")


def test_an_empty_file_permits_nothing() -> None:
    assert parsed("# nothing\n").grants("ada", ["admin"]).empty
