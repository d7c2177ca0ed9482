"""Which functions there are: the built-in ones, and those a user adds to them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ksql.base import ident
from ksql.functions.dialects import ELSEWHERE
from ksql.functions.errors import UnknownFunction
from ksql.functions.library import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ksql.base.errors import Span
    from ksql.functions.spec import Function


_MISTYPED: Final = 0.85
"""The share of letters in common with a name that is probably meant."""


class Functions:
    """An immutable set of functions; names ignore case."""

    __slots__ = ("_by_name",)

    def __init__(self, functions: Iterable[Function]) -> None:
        self._by_name: Mapping[str, Function] = MappingProxyType(
            {function.name.upper(): function for function in functions}
        )

    def find(self, name: str) -> Function | None:
        """Return the function of that name, or None."""
        return self._by_name.get(name.upper())

    def get(self, name: str, span: Span | None = None) -> Function:
        """Return the function of that name.

        Raises: UnknownFunction, with the names that look like it.
        """
        function = self.find(name)
        if function is None:
            raise UnknownFunction(name, self.near(name), span=span)
        return function

    def all(self) -> list[Function]:
        """Return all functions by name."""
        return [self._by_name[name] for name in sorted(self._by_name)]

    def near(self, name: str) -> tuple[str, ...]:
        """Return the names that look most like ``name``; of one of other databases, those here."""
        foreign = ident.similar(name, ELSEWHERE, least=_MISTYPED)
        own = ident.similar(name, self._by_name, least=_MISTYPED)
        if foreign and not own:
            return tuple(map(ident.quote, ELSEWHERE[foreign[0]]))
        return ident.near(name, self._by_name, 2)

    def with_(self, functions: Iterable[Function]) -> Functions:
        """Return this set and those functions, which win over present ones of the same name."""
        return Functions([*self._by_name.values(), *functions])


BUILTINS = Functions(function for members in FAMILIES for function in members.values())
