from __future__ import annotations

from ksql.app.extensions import read_extensions
from ksql.base.config import Settings


def test_user_functions_can_be_switched_off(tmp_path):
    (tmp_path / "own.py").write_text("X = 1")
    settings = Settings({"ksql.extension.dir": str(tmp_path)})
    assert read_extensions(settings) == ({"own.py": "X = 1"}, [])
    off = Settings({"ksql.extension.dir": str(tmp_path), "ksql.udfs.enabled": "false"})
    assert read_extensions(off) == ({}, [])
