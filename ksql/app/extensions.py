"""The user functions of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.functions.udf import Problem, read_directory

if TYPE_CHECKING:
    from ksql.base.config import Settings


def read_extensions(settings: Settings) -> tuple[dict[str, str], list[Problem]]:
    """The texts of the files that declare user functions; none if these are switched off."""
    if not settings.flag("ksql.udfs.enabled"):
        return {}, []
    return read_directory(settings.text("ksql.extension.dir"))
