"""``ksql demo``: the main job on real data, explained step by step and checked at the end."""

from __future__ import annotations

from server.demo.command import main

__all__ = ["main"]
