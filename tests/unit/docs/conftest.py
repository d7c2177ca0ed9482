"""``pytest tests/unit/docs --update-docs`` rewrites the answers that pages show; review them."""

from __future__ import annotations


def pytest_addoption(parser):
    parser.addoption("--update-docs", action="store_true", help="write the answers in pages anew")
