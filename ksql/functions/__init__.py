"""The definition of every function, in one place."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.functions.errors import *
    from ksql.functions.instantiate import *
    from ksql.functions.registry import *
    from ksql.functions.resolve import *
    from ksql.functions.spec import *
    from ksql.functions.state_copy import copied
    from ksql.functions.udf import *
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "errors": "OverloadGone UnknownFunction",
            "instantiate": (
                "function_settings instantiate_aggregate instantiate_scalar instantiate_table"
            ),
            "registry": "BUILTINS Functions describe",
            "resolve": "OverloadKey find_overload resolve_overload",
            "spec": "AggregateFunction Function InPlace Scalar",
            "state_copy": "copied",
            "udf": "Problem load_sources read_directory udaf udtf",
        },
    )
