"""One statement at a time: checked, ordered, carried out."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.control.engine.changes import *
    from ksql.control.engine.command_execution import *
    from ksql.control.engine.engine import Engine
    from ksql.control.engine.ports import *
    from ksql.control.engine.rebuild_progress import *
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "changes": "Change IdsFrom applied",
            "command_execution": "Upgrade UpgradeHistory",
            "engine": "Engine",
            "rebuild_progress": "records_read records_to_read",
            "ports": "Command CommandStatus MemoryLog StatusName",
        },
    )
