"""``ksql state`` lists what was moved aside and removes it."""

from __future__ import annotations

import pytest

from ksql.core.files import Trash
from server import entry


@pytest.fixture
def lying(tmp_path):
    """Two things that lie aside; their names."""
    aside = Trash(tmp_path / "svc_" / "aside", lambda: 1_800_000_000_000)
    names = []
    for name in ("CTAS_A_1", "CTAS_B_2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows").write_text("12345")
        names.append(aside.take(tmp_path / name, "checkpoint", "nobody knows it").name)
    return names


@pytest.fixture
def ksql_state(tmp_path, capsys):
    def run(*arguments):
        options = ["-o", f"ksql.state.dir={tmp_path}", "-o", "ksql.service.id=svc_"]
        status = entry.main(["state", *options, *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_list_shows_content_times_and_reason(ksql_state, lying, tmp_path):
    status, out, _ = ksql_state("list")
    assert status == 0
    for text in (
        *lying,
        f"from {tmp_path / 'CTAS_A_1'}",
        "moved 2027-01-15 08:00:00Z: nobody knows it; kept until 2027-01-22 08:00:00Z",
    ):
        assert text in out


def test_unlimited_retention_is_shown(ksql_state, lying):
    _, out, _ = ksql_state("-o", "ksql.state.aside.retention.ms=-1", "list")
    assert "nobody knows it; kept\n" in out


def test_empty_trash_is_shown(ksql_state):
    assert ksql_state("list") == (0, "Nothing lies aside.\n", "")


def test_single_entry_is_removed(ksql_state, lying):
    assert ksql_state("remove", lying[0])[0] == 0
    _, out, _ = ksql_state("list")
    assert lying[0] not in out
    assert lying[1] in out


def test_all_are_removed(ksql_state, lying):
    ksql_state("remove", "--all")
    assert ksql_state("list")[1] == "Nothing lies aside.\n"


@pytest.mark.parametrize("name", ["CTAS_A_1", "..", "../queries", "/"])
def test_unlisted_entry_is_not_removed(ksql_state, lying, name):
    status, out, err = ksql_state("remove", lying[0], name)
    assert (status, out) == (1, "")
    assert f"nothing called '{name}' lies aside" in err
    assert lying[0] in ksql_state("list")[1]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_options_before_and_after_the_action(order, lying, tmp_path, capsys):
    parts = (
        ["list"],
        ["-o", f"ksql.state.dir={tmp_path}"],
        ["-o", "ksql.service.id=svc_"],
    )
    assert entry.main(["state", *(word for place in order for word in parts[place])]) == 0
    assert lying[0] in capsys.readouterr().out


def test_names_and_options_may_be_mixed(lying, tmp_path, capsys):
    options = (f"--override=ksql.state.dir={tmp_path}", "-o", "ksql.service.id=svc_")
    assert entry.main(["state", "remove", lying[0], *options, lying[1]]) == 0
    assert capsys.readouterr().out == f"{lying[0]} removed\n{lying[1]} removed\n"


@pytest.mark.parametrize(
    "arguments",
    [["remove"], ["remove", "x", "--all"], [], ["list", "x"], ["list", "--all"], ["sweep"]],
)
def test_action_is_required(ksql_state, arguments, capsys):
    with pytest.raises(SystemExit):
        ksql_state(*arguments)
    assert "usage: ksql state" in capsys.readouterr().err
