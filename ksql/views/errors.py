"""The reasons why a table cannot be read: nothing keeps it, or its stores are not filled yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import KsqlError, StatementError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.views.stores.base import StoreClosed

MORE = "See https://cnfl.io/queries for more info."
PUSH_HINT = "Add EMIT CHANGES if you intended to issue a push query."


class NotQueryable(StatementError):
    """A table that no query keeps."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The `{name}` table isn't queryable. To derive a queryable table, "  # noqa: S608 - a hint
            f"you can do 'CREATE TABLE QUERYABLE_{name} AS SELECT * FROM {name}'. {MORE}",
            hint=PUSH_HINT,
        )


class TableNotReady(KsqlError):
    """The stores of a table do not hold all of it yet.

    ``is_ready`` says, without waiting, whether they do by now; ``patience_s`` is how long it may
    be worth asking.
    """

    code = 50302

    def __init__(
        self,
        name: str,
        missing: int = 0,
        reason: str = "",
        is_ready: Callable[[], bool] = lambda: False,
        patience_s: float = 0.0,
    ) -> None:
        lag = f"{missing} records of its topic are still to be read" if missing else ""
        super().__init__(
            f"The table {name} is not ready for pull queries yet",
            detail=reason or lag,
            hint="Try again in a moment: an answer now would lack rows.",
        )
        self.is_ready = is_ready
        self.patience_s = patience_s


_MOVING_S = 10.0


class TableMoves(TableNotReady):
    """The stores of a table are being replaced by new ones, which have its rows at once."""

    def __init__(self, closed: StoreClosed) -> None:
        super().__init__("", is_ready=lambda: True, patience_s=_MOVING_S)
        self.message, self.detail, self.hint = closed.message, "", closed.hint
