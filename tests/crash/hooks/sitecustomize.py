"""Loaded by every Python process of the server under test: the server itself and its workers."""

from __future__ import annotations

from tests.crash import points

points.install()
