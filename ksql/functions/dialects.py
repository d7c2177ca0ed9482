"""The names here of functions that other databases know.

Only names with the same meaning, or whose first choice here is clear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

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
