"""Functions that users write in Python: declared by decorators, loaded from a directory."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.functions.user.udf_process import UdfProcessPool
    from ksql.functions.user.watch import *
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "udf_process": "UdfProcessPool",
            "watch": "Limits Overrun CallWatch watched",
        },
    )
