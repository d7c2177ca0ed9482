"""The codes of users' functions that a checkpoint has seen, in a small file of it.

Rows that some former code let pass may be in a result for as long as its query lives. This holds
even if that code has come back meanwhile. So all codes are kept, not only the plan's and the
running one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ksql.spark.checkpoint.checkpoint import TextsFile
from ksql.sql.plan import codec
from ksql.sql.upgrade import as_run, hazards

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ksql.functions import Functions

_log = logging.getLogger(__name__)
_BUILT_IN: Final = "built-in"
_FILE: Final = TextsFile("code.json", "code", "its code is")


def as_it_runs(query_id: str, plan_text: str, checkpoint: Path, functions: Functions) -> str:
    """Return a stored plan as it is run from that checkpoint; note the functions' code there.

    Raises: CheckpointDamaged, NewerCheckpoint, OSError.
    """
    plan = codec.loads(plan_text, functions)
    if not plan.code:  # it calls none, or is of a version that did not say
        return plan_text
    before = read(checkpoint)
    now = [
        (name, function.code or _BUILT_IN)
        for name, _ in plan.code
        if (function := functions.find(name)) is not None
    ]
    seen = {name: digests.split() for name, digests in before.items()}
    for name, digest in (*plan.code, *now):
        if digest not in seen.setdefault(name, []):
            seen[name].append(digest)
    others = {name for name, digests in seen.items() if len(digests) > 1}
    after = {name: " ".join(digests) for name, digests in seen.items()}
    if after != before and checkpoint.is_dir():
        write(checkpoint, after)
        for reason in hazards(plan, others):
            _log.warning("function_code_changed", extra={"query_id": query_id, "reason": reason})
    ran = as_run(plan, others)
    return plan_text if ran == plan else codec.dumps(ran)


def read(checkpoint: Path) -> dict[str, str]:
    """Return the digests that a checkpoint has seen, by function, divided by blanks.

    Raises: CheckpointDamaged, NewerCheckpoint, OSError.
    """
    return _FILE.read(checkpoint)


def write(checkpoint: Path, digests: Mapping[str, str]) -> None:
    """Write them down.

    Raises: OSError.
    """
    _FILE.write(checkpoint, digests)
