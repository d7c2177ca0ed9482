"""The decorators that a file of user functions imports, and the loading of such files.

Example::

    from ksql.functions.udf import udaf, udf, udtf

    @udf
    def reverse(text: str) -> str:
        '''The text from its end to its start.'''
        return text[::-1]
"""

from __future__ import annotations

from ksql.functions.user.declare import udaf, udf, udtf
from ksql.functions.user.load import Problem, load_sources, read_directory

__all__ = [
    "Problem",
    "load_sources",
    "read_directory",
    "udaf",
    "udf",
    "udtf",
]
