"""Every module has tests of its own, or its README names those that cover it.

A module's own tests stand in ``tests/unit`` at the same path, as ``test_<module>.py``. A module
without any is named in the section "Tests" of the nearest README above it::

    ## Tests

    | module | covered by |
    |---|---|
    | `avro/read`, `avro/write` | `unit/formats/avro/test_serde.py` |

Modules are named from the README's folder, tests from ``tests``, or from the root: ``qtt/cases``.
A folder stands for all its files. The tests of an ``__init__.py`` that holds code are named after
its folder.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("ksql", "server", "qtt", "migrations")
# where the tests of a folder stand, if not at its own path
MOVED = {"ksql": "", "server/cli": "cli", "server/demo": "demo"}
# READMEs without their section yet; one that has become complete is taken from the list
NOT_YET: tuple[str, ...] = ()


def product_modules(root: Path) -> list[str]:
    """List the product's modules that hold code, as paths without their ending."""
    files = (file for place in PLACES for file in sorted((root / place).rglob("*.py")))
    return [
        file.with_suffix("").relative_to(root).as_posix()
        for file in files
        if file.stem != "__init__" or _holds_code(file)
    ]


def _holds_code(file: Path) -> bool:
    return any(
        not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.parse(file.read_text()).body
    )


def own_test(module: str) -> str:
    """Return where the tests of a module's own name stand, from ``tests``."""
    folder, _, name = module.removesuffix("/__init__").rpartition("/")
    for above, moved in sorted(MOVED.items(), reverse=True):
        if folder == above or folder.startswith(f"{above}/"):
            folder = f"{moved}{folder.removeprefix(above)}".strip("/")
            break
    return "/".join(part for part in ("unit", folder, f"test_{name}.py") if part)


def readme_of(root: Path, module: str) -> str:
    """Return the nearest README above a module."""
    folder = (root / module).parent
    while not (folder / "README.md").exists():
        folder = folder.parent
    return (folder / "README.md").relative_to(root).as_posix()


def rows(page: str) -> dict[str, list[str]]:
    """Return the tests of each module that a README's section "Tests" names."""
    _, _, section = f"\n{page}".partition("\n## Tests\n")
    section = section.partition("\n## ")[0]
    found = {}
    for line in section.splitlines():
        cells = line.strip("|").split("|") if line.startswith("| `") else []
        if len(cells) > 1:
            for module in re.findall(r"`([^`]+)`", cells[0]):
                found[module] = re.findall(r"`([^`]+)`", "|".join(cells[1:]))
    return found


def faults(root: Path) -> dict[str, list[str]]:
    """Return what is missing or wrong, by README."""
    found: dict[str, list[str]] = {}
    named: dict[str, dict[str, list[str]]] = {}
    for module in product_modules(root):
        readme = readme_of(root, module)
        listed = named.setdefault(readme, rows((root / readme).read_text()))
        tests = listed.pop(module.removeprefix(f"{readme.removesuffix('README.md')}"), None)
        own = own_test(module)
        if (root / "tests" / own).exists():
            wrong = [f"has tests of its own: {own}"] if tests is not None else []
        elif tests:
            wrong = [f"no such tests: {test}" for test in tests if not _exists(root, test)]
        else:
            wrong = [f"neither {own} nor tests named in {readme}"]
        found.setdefault(readme, []).extend(f"{module}: {fault}" for fault in wrong)
    for readme, left in named.items():
        found[readme].extend(f"{readme}: no such module: {module}" for module in left)
    return found


def _exists(root: Path, test: str) -> bool:
    return (root / "tests" / test).exists() or (root / test).exists()


FAULTS = faults(ROOT)


@pytest.mark.parametrize("readme", sorted(FAULTS))
def test_every_module_has_tests_of_its_own_or_named_in_its_readme(readme):
    if readme in NOT_YET:
        assert FAULTS[readme], f"{readme} is complete: take it from NOT_YET"
    else:
        assert FAULTS[readme] == []


def test_places_not_gone_over_exist():
    assert set(NOT_YET) <= set(FAULTS)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "ksql/kafka").mkdir(parents=True)
    (tmp_path / "tests/unit/kafka").mkdir(parents=True)
    (tmp_path / "ksql/kafka/README.md").write_text("# Kafka\n")
    (tmp_path / "ksql/kafka/__init__.py").write_text('"""Topics."""\n')
    (tmp_path / "ksql/kafka/admin.py").write_text("x = 1\n")
    return tmp_path


def test_a_module_without_tests_is_found(tree):
    (fault,) = faults(tree)["ksql/kafka/README.md"]
    assert fault.startswith("ksql/kafka/admin: neither unit/kafka/test_admin.py nor tests named")


def test_tests_at_the_same_path_are_enough(tree):
    (tree / "tests/unit/kafka/test_admin.py").touch()
    assert faults(tree) == {"ksql/kafka/README.md": []}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| `admin` | `unit/kafka` |", None),
        ("| `admin` | `unit/test_gone.py` |", "ksql/kafka/admin: no such tests: unit/test_gone.py"),
        ("| `admin`, `gone` | `unit/kafka` |", "ksql/kafka/README.md: no such module: gone"),
    ],
)
def test_a_readme_names_the_tests(tree, row, fault):
    (tree / "ksql/kafka/README.md").write_text(f"# Kafka\n\n## Tests\n\n{row}\n\n## Errors\n")
    assert faults(tree) == {"ksql/kafka/README.md": [fault] if fault else []}


def test_code_in_a_package_counts_as_a_module(tree):
    (tree / "ksql/kafka/__init__.py").write_text("x = 1\n")
    assert product_modules(tree) == ["ksql/kafka/__init__", "ksql/kafka/admin"]


@pytest.mark.parametrize(
    ("module", "test"),
    [
        ("ksql/formats/avro/read", "unit/formats/avro/test_read.py"),
        ("ksql/app/__init__", "unit/test_app.py"),
        ("server/main", "unit/server/test_main.py"),
        ("server/cli/main", "unit/cli/test_main.py"),
        ("qtt/load", "unit/qtt/test_load.py"),
    ],
)
def test_tests_stand_at_the_path_of_their_module(module, test):
    assert own_test(module) == test
