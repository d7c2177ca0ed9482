"""Unit tests stand where their module does: at its path below ``tests/unit``."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# where the tests of a folder stand, if not at its own path
MOVED = {
    "datagen": "server/datagen",
    "cli": "server/cli",
    "demo": "server/demo",
    "server": "server",
    "qtt": "qtt",
}
# folders of tests that belong to no package of the product
OWN = {"chains", "docs", "stored"}


def package_of(folder: str) -> str:
    """Return the product's folder to which a folder of tests belongs."""
    first, _, below = folder.partition("/")
    if first in MOVED:
        return f"{MOVED[first]}/{below}".rstrip("/")
    return f"ksql/{folder}"


FOLDERS = sorted(
    folder.relative_to(ROOT / "tests/unit").as_posix()
    for folder in {file.parent for file in (ROOT / "tests/unit").rglob("test_*.py")}
    if folder != ROOT / "tests/unit"
)


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder not in OWN])
def test_tests_have_the_path_of_their_package(folder):
    assert (ROOT / package_of(folder)).is_dir()


@pytest.mark.parametrize(
    ("folder", "package"),
    [
        ("sql/plan", "ksql/sql/plan"),
        ("cli", "server/cli"),
        ("demo/shop", "server/demo/shop"),
        ("qtt", "qtt"),
    ],
)
def test_the_package_of_a_folder(folder, package):
    assert package_of(folder) == package


def test_every_package_has_tests():
    packages = {package.parent.name for package in (ROOT / "ksql").glob("*/__init__.py")}
    assert packages <= {folder.partition("/")[0] for folder in FOLDERS}
