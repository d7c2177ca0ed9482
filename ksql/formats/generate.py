"""Generated source under way: finished functions and the values they refer to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Source:
    """Functions as text, and a name for everything they use."""

    names: dict[str, Any] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)

    def add(self, value: object) -> str:
        """Make a value known to the text; its name there."""
        name = f"g{len(self.names)}"
        self.names[name] = value
        return name

    def define(self, head: str, body: list[str]) -> None:
        """Add a function."""
        self.functions.append(f"def {head}:\n" + "".join(f"    {line}\n" for line in body))

    def compiled(self) -> dict[str, Any]:
        """Run the text; the names with the functions among them."""
        source = "\n".join(self.functions)
        exec(compile(source, "<generated serde>", "exec"), self.names)  # noqa: S102 - our own text
        return self.names


def indent(lines: list[str], depth: int = 1) -> list[str]:
    """The lines, so many levels deeper."""
    return ["    " * depth + line for line in lines]
