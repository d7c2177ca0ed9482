"""The reasons why two schemas are not compatible, in words that name the place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Roles(NamedTuple):
    """How the schema that reads and the one that wrote are called in messages."""

    reader: str
    writer: str


BACKWARD: Final = Roles("new", "old")
FORWARD: Final = Roles("old", "new")


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason why data written with one schema cannot be read with the other.

    ``kind`` is Confluent's name for it, ``path`` where it lies in the schema.
    """

    kind: str
    path: str
    text: str
    info: str = ""

    def described(self) -> str:
        """Return the difference as registries print it."""
        more = f", additionalInfo:'{self.info}'" if self.info else ""
        return f"{{errorType:'{self.kind}', description:'{self.text}'{more}}}"


def told(differences: Sequence[Difference]) -> list[str]:
    """Return each as text, the same one only once."""
    return list(dict.fromkeys(one.described() for one in differences))
