"""Properties are tried on few examples, without a deadline: the cores may be shared."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unit", max_examples=10, deadline=None)
settings.load_profile("unit")
