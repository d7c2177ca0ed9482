"""Overloads are named by their signatures: another order, or another overload, changes nothing."""

from __future__ import annotations

import pytest

from ksql.functions.errors import OverloadGone
from ksql.functions.registry import BUILTINS
from ksql.functions.resolve import overload_of, signature
from ksql.functions.spec import AggregateFactory, Function, Scalar
from tests.unit.functions import released


@pytest.mark.parametrize("function", BUILTINS.all(), ids=lambda function: function.name)
def test_a_signature_means_one_overload(function):
    signatures = [signature(overload) for overload in function.overloads]
    assert len(set(signatures)) == len(signatures)
    assert [overload_of(function, key) for key in signatures] == list(function.overloads)


def test_every_signature_that_was_released_is_still_there():
    assert released.released() - released.present() == set()


def test_a_release_adds_every_new_signature():
    if released.is_release(released.CHANGELOG.read_text(encoding="utf-8")):
        assert released.released() == released.present(), (
            "run: python -m tests.unit.functions.released"
        )


@pytest.mark.parametrize(
    ("changelog", "is_release"),
    [
        ("# C\n\n## [Unreleased]\n\n### Added\n\n- x\n\n## [1]\n\n- y\n", False),
        ("# C\n\n## [Unreleased]\n\n## [1]\n\n- y\n", True),
        ("# C\n\n## [1]\n\n- y\n", True),
    ],
)
def test_a_release_leaves_nothing_unreleased(changelog, is_release):
    assert released.is_release(changelog) == is_release


def function_of(*overloads):
    return Function("F", "SCALAR", "TEST", "a test", overloads)


def scalar(*params, returns="STRING"):
    return Scalar(params, returns, str)


def test_signature_text():
    assert signature(scalar("int times", "STRING... rest")) == "(INT, VARCHAR...) -> VARCHAR"
    assert signature(scalar("ARRAY<T>", "T => BOOLEAN", returns="ARRAY<T>")) == (
        "(ARRAY<T>, LAMBDA (T) => BOOLEAN) -> ARRAY<T>"
    )
    assert signature(Scalar((), lambda types: types[0], str)) == "()"
    factory = AggregateFactory(("T",), ("INT",), "T", lambda *_: None)
    assert signature(factory) == "(T; INT) -> T"


def test_a_signature_means_the_same_wherever_it_stands():
    first, second = scalar("INT"), scalar("STRING")
    for overloads in ((first, second), (second, first)):
        assert overload_of(function_of(*overloads), signature(first)) is first


@pytest.mark.parametrize("key", ["(BIGINT) -> STRING", "(INT) -> INT"])
def test_an_overload_that_is_gone_has_no_stand_in(key):
    with pytest.raises(OverloadGone) as caught:
        overload_of(function_of(scalar("INT"), scalar("STRING")), key)
    assert "which is not there any more" in caught.value.message
    assert caught.value.detail == "F has: (INT) -> VARCHAR, (VARCHAR) -> VARCHAR"
