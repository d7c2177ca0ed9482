"""The numbers: `python -m tests.bench`. Not part of the tests; nothing here asserts a time."""

from __future__ import annotations
