"""Chains of two to five queries and their records, made at random."""

from __future__ import annotations

import random

from tests.chains.cases import Chain
from tests.chains.changing import Changing
from tests.chains.late import Late
from tests.chains.making import Making

EACH = 4
"""Every so many seeds a chain's tables change; those of all others stay as they are."""
LATE = 6
"""Of twice as many seeds this one has records behind others, too."""


def chain_of(seed: int) -> Chain:
    """The chain of a seed."""
    making = Making if seed % EACH else Changing
    making = Late if seed % (2 * EACH) == LATE else making
    return making(random.Random(seed)).chain()
