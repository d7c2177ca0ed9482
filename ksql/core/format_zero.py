"""Format zero: the oldest forms that are read are those that the last build of 0.1.0 wrote.

Whatever is older is refused by name. That build reads all forms before, and this version reads
what it writes: so the way from there leads through it.
"""

from __future__ import annotations

from typing import Final

from ksql.core.errors import ServerError

READER: Final = "the last build of version 0.1.0"
"""The version that reads everything before format zero."""
FIRST: Final = "0.2.0"


def before(what: str) -> str:
    """Return the fact about a stored artefact that no version from format zero on reads."""
    return f"{what} is older than format zero: version {FIRST} and later do not read it"


class BeforeFormatZero(ServerError):
    """A stored artefact of a version before format zero; ``remedy`` follows after its reader."""

    code = 50002

    def __init__(self, what: str, detail: str = "", remedy: str = "") -> None:
        hint = f"Start {READER}, which reads it."
        super().__init__(before(what), detail=detail, hint=" ".join(filter(None, (hint, remedy))))
