"""Make the newest form of plans that earlier versions have stored, one step per version.

A released format is never edited. Another one gets a number of its own, and here a step that makes
a plan of it out of one of the format before. A step works on the stored JSON and on data that is
frozen with it. So it means the same whatever classes and functions there are later.

A format that only adds fields which may be left out needs no step. So there is none since format
zero; the test has made-up ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.functions import Functions

    Steps = Mapping[int, Callable[[Any, Functions], Any]]


def upcast(plan: Any, version: int, functions: Functions, steps: Steps) -> Any:
    """Return a plan of that format as one of the newest format.

    ``steps`` are by the version that they read; a version without one is read as the next one.
    """
    for reads in sorted(steps):
        if reads >= version:
            plan = steps[reads](plan, functions)
    return plan


UPCASTERS: Final[Steps] = {}
"""By the version that they read; each gives the next one."""
