from __future__ import annotations

import zipfile

from ksql.spark.session.session import package_zip


def package(folder, text):
    (folder / "pkg" / "sub").mkdir(parents=True, exist_ok=True)
    (folder / "pkg" / "sub" / "a.py").write_text(text)
    (folder / "pkg" / "b.pyc").write_text("no")
    return folder / "pkg"


def test_the_name_reports_the_content(tmp_path):
    first = package_zip(package(tmp_path / "1", "x = 1"), tmp_path)
    same = package_zip(package(tmp_path / "2", "x = 1"), tmp_path)
    other = package_zip(package(tmp_path / "3", "x = 2"), tmp_path)
    assert first == same != other


def test_only_what_runs_is_packed(tmp_path):
    archive = package_zip(package(tmp_path, "x = 1"), tmp_path)
    with zipfile.ZipFile(archive) as bundle:
        assert bundle.namelist() == ["pkg/sub/a.py"]
