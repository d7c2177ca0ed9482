"""Vague names are found wherever a module binds one."""

from __future__ import annotations

import pytest

from tests import identifiers


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "def f(told): ...",
        "def _asked(): ...",
        "class Found: ...",
        "self.wanted = 2",
        "[made for made in rows]",
        "if (found := f()): ...",
        "async def anew(): ...",
    ],
)
def test_a_vague_name_is_found(source):
    assert identifiers.vague_names(source)


@pytest.mark.parametrize("source", ["rows = found", "f(told=1)", "x.made", "source = 1"])
def test_read_names_are_not_reported(source):
    assert identifiers.vague_names(source) == []


def test_names_beyond_those_that_are_left_are_reported(monkeypatch, tmp_path, capsys):
    (tmp_path / "ksql").mkdir()
    (tmp_path / "ksql/m.py").write_text("found = 1\nmade = 2\n")
    monkeypatch.setattr(identifiers, "ROOT", tmp_path)
    monkeypatch.setattr(identifiers, "LEFT", {"ksql/m.py": 1})
    assert identifiers.main() == 1
    assert 'ksql/m.py:2: "made"' in capsys.readouterr().out
    monkeypatch.setattr(identifiers, "LEFT", {"ksql/m.py": 2})
    assert identifiers.main() == 0
    monkeypatch.setattr(identifiers, "LEFT", {"ksql/m.py": 3})
    assert identifiers.main() == 1
    assert "set it in LEFT" in capsys.readouterr().out
