"""All functions by name, built-in and users', and what DESCRIBE FUNCTION lists of one.

Names that other databases use are mapped to the names here. Only names with the same meaning are
listed, or whose first choice here is clear.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ksql.core import ident
from ksql.functions.errors import UnknownFunction
from ksql.functions.library import FAMILIES
from ksql.functions.resolve import parameters
from ksql.functions.signature import parse_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ksql.core import Span
    from ksql.functions.spec import Function


ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "ANY_VALUE": ("LATEST_BY_OFFSET",),
    "APPROX_COUNT_DISTINCT": ("COUNT_DISTINCT",),
    "APPROX_DISTINCT": ("COUNT_DISTINCT",),
    "ARRAY_AGG": ("COLLECT_LIST",),
    "ARRAY_SIZE": ("ARRAY_LENGTH",),
    "AVERAGE": ("AVG",),
    "CARDINALITY": ("ARRAY_LENGTH",),
    "CEILING": ("CEIL",),
    "CHARACTER_LENGTH": ("LEN",),
    "CHARINDEX": ("INSTR",),
    "CHAR_LENGTH": ("LEN",),
    "CURRENT_TIMESTAMP": ("UNIX_TIMESTAMP",),
    "DATE_ADD": ("DATEADD", "TIMESTAMPADD"),
    "DATE_FORMAT": ("FORMAT_DATE", "FORMAT_TIMESTAMP"),
    "DATE_SUB": ("DATESUB", "TIMESTAMPSUB"),
    "ELEMENT_AT": ("ELT",),
    "FIRST_VALUE": ("EARLIEST_BY_OFFSET",),
    "GET_JSON_OBJECT": ("EXTRACTJSONFIELD",),
    "GROUP_CONCAT": ("COLLECT_LIST",),
    "ISNULL": ("IFNULL",),
    "JSON_EXTRACT": ("EXTRACTJSONFIELD",),
    "JSON_EXTRACT_SCALAR": ("EXTRACTJSONFIELD",),
    "JSON_QUERY": ("EXTRACTJSONFIELD",),
    "JSON_VALUE": ("EXTRACTJSONFIELD",),
    "LAST_VALUE": ("LATEST_BY_OFFSET",),
    "LENGTH": ("LEN",),
    "LISTAGG": ("COLLECT_LIST",),
    "LOCATE": ("INSTR",),
    "LOWER": ("LCASE",),
    "MEAN": ("AVG",),
    "NOW": ("UNIX_TIMESTAMP",),
    "NVL": ("IFNULL",),
    "POSITION": ("INSTR",),
    "POW": ("POWER",),
    "RAND": ("RANDOM",),
    "REGEXP_SUBSTR": ("REGEXP_EXTRACT",),
    "SEQUENCE": ("GENERATE_SERIES",),
    "SIZE": ("ARRAY_LENGTH",),
    "STDDEV": ("STDDEV_SAMP",),
    "STRING_AGG": ("COLLECT_LIST",),
    "STRING_SPLIT": ("SPLIT",),
    "STRPOS": ("INSTR",),
    "STR_TO_DATE": ("PARSE_DATE",),
    "SUBSTR": ("SUBSTRING",),
    "TO_CHAR": ("FORMAT_TIMESTAMP", "FORMAT_DATE"),
    "TO_DATE": ("PARSE_DATE",),
    "TO_JSON": ("TO_JSON_STRING",),
    "TO_TIMESTAMP": ("PARSE_TIMESTAMP",),
    "UNNEST": ("EXPLODE",),
    "UPPER": ("UCASE",),
}


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


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a variation."""

    name: str
    type: str
    variadic: bool

    def __str__(self) -> str:
        return f"{self.name} {self.type}{'...' if self.variadic else ''}".lstrip()


@dataclass(frozen=True, slots=True)
class Variation:
    """One way to call a function."""

    function: str
    arguments: tuple[Argument, ...]
    returns: str
    description: str

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


def describe(function: Function) -> list[Variation]:
    """Return all ways to call the function, in the order of its overloads.

    Source: docs/sql/managing.md#describe.
    """
    variations = []
    for overload in function.overloads:
        arguments = tuple(
            Argument(param.name, str(param.pattern), param.variadic)
            for param in parameters(overload)
        )
        if isinstance(overload.returns, str):
            returns = str(parse_type(overload.returns))
        else:
            returns = getattr(overload.returns, "shown", "")
        variations.append(
            Variation(function.name, arguments, returns, overload.doc or function.description)
        )
    return variations
