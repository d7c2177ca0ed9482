"""Chains of two to five queries and their records, made at random."""

from __future__ import annotations

import random

from tests.chains.cases import Chain
from tests.chains.changing import Changing
from tests.chains.making import Making

EACH = 4
"""Every so many seeds a chain's tables change; those of all others stay as they are."""


def chain_of(seed: int) -> Chain:
    """The chain of a seed."""
    making = Making if seed % EACH else Changing
    return making(random.Random(seed)).chain()
