"""A package has one interface: others import what its root exports, and no module inside.

A root is the ``__init__.py`` of the package that holds the module; some load a name when it is
used first (``ksql/core/lazy_exports.py``). ``LEFT`` lists the names that others still take from a
module.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAME_NAME = "the function is called as its module: the root would hide the one or the other"
TWO_MEANINGS = "two modules of the package export the name"
OF_ROOTS = "roots are made with it"
COMMAND = "the command starts in this package, and imports the server only to run it"
PUBLISHED = "files of user functions import it"
# a name that is imported from a module of another package, and why; the list may only shrink
LEFT = {
    "ksql.app.backup.save.save": SAME_NAME,
    "ksql.control.statements.dry_run.dry_run": SAME_NAME,
    "ksql.core.lazy_exports.lazy_exports": OF_ROOTS,
    "ksql.exec.dataflow.load.load": SAME_NAME,
    "ksql.exec.dataflow.partitioning.placement.placement": SAME_NAME,
    "ksql.exec.dataflow.topology.stages": SAME_NAME,
    "ksql.exec.dataflow.topology.topology": SAME_NAME,
    "ksql.functions.udf.udf": PUBLISHED,
    "ksql.kafka.leadership_log.topic_name": TWO_MEANINGS,
    "ksql.kafka.producers.worker_producer.worker_producer": SAME_NAME,
    "ksql.sql.plan.build.build": SAME_NAME,
    "ksql.sql.plan.explain.explain": SAME_NAME,
    "ksql.sql.plan.walk.nodes": SAME_NAME,
    "ksql.sql.syntax.walk.walk": SAME_NAME,
    "server.app.behind_http": COMMAND,
    "server.listeners.bind": COMMAND,
    "server.listeners.parse_listeners": COMMAND,
    "server.listeners.url_of": COMMAND,
    "server.logs.log_to_stderr": COMMAND,
    "server.service.StartedRequest": COMMAND,
    "server.service.Service": COMMAND,
    "server.wire.V1_JSON": COMMAND,
    "server.wire.V1_PROTOBUF": COMMAND,
}
SHARE = 0.98


@cache
def modules() -> dict[str, Path]:
    """Return the product's modules by name; a package is called as its directory."""
    files = [file for folder in ("ksql", "server", "qtt") for file in (ROOT / folder).rglob("*.py")]
    return {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for file in files
    }


def package_of(module: str) -> str:
    """Return one of the packages below ``ksql``, or the package next to it."""
    first, *others = module.split(".")
    return f"ksql.{others[0]}" if first == "ksql" and others else first


def imports(module: str) -> list[tuple[str, str]]:
    """Return what a module takes from other packages: module and name."""
    tree = ast.parse(modules()[module].read_text("utf-8"))
    return [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in modules()
        for alias in node.names
        if package_of(node.module) != package_of(module)
    ]


@cache
def taken() -> tuple[list[str], list[str]]:
    """Return the imports through roots, and those past them."""
    through: list[str] = []
    past: list[str] = []
    for user in modules():
        for module, name in imports(user):
            is_root = modules()[module].name == "__init__.py"
            (through if is_root else past).append(f"{module}.{name}")
    return through, past


def test_others_import_the_root() -> None:
    assert sorted(set(taken()[1])) == sorted(LEFT)


def test_nearly_all_imports_pass_through_roots() -> None:
    through, past = taken()
    assert len(through) / (len(through) + len(past)) >= SHARE


def exports(root: str) -> dict[str, str]:
    """Return the names that a root takes from its package, each with its module."""
    tree = ast.parse(modules()[root].read_text("utf-8"))
    names = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        if node.module is not None and f"{node.module}.".startswith(f"{root}.")
        for alias in node.names
        if alias.name != "*"
    }
    load = getattr(importlib.import_module(root), "__getattr__", None)
    loaded = {} if load is None else inspect.getclosurevars(load).nonlocals["modules"]
    return names | {name: f"{root}.{module}" for name, module in loaded.items()}


ROOTS = {
    module: names
    for module, file in sorted(modules().items())
    if module.startswith("ksql.") and file.name == "__init__.py" and (names := exports(module))
}


@pytest.mark.parametrize("root", ROOTS)
def test_a_root_has_all_that_it_exports(root: str) -> None:
    package = importlib.import_module(root)
    for name, module in ROOTS[root].items():
        if f"{module}.{name}" in modules():
            importlib.import_module(f"{module}.{name}")
        assert hasattr(package, name)


def test_roots_export_what_others_import() -> None:
    through = {tuple(name.rsplit(".", 1)) for name in taken()[0]}
    assert [
        f"{root}.{name}"
        for root, name in sorted(through)
        if root in ROOTS and name not in ROOTS[root] and f"{root}.{name}" not in modules()
    ] == []


def test_an_unknown_name_of_a_lazy_root_is_refused() -> None:
    package = importlib.import_module("ksql.kafka")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing
