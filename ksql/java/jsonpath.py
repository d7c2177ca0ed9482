"""The paths of EXTRACTJSONFIELD: ``$.name[0]["other name"]``."""

from __future__ import annotations

import functools
import re

from ksql.java.errors import EvaluationError

_STEP = re.compile(
    r"""\.(?P<name>[\w\-:$@]+)
      | \[(?P<index>[\w\-]+)\]
      | \["(?P<quoted>(?:[^"\\]|\\["\\])*)"\]""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)")


class BadPath(EvaluationError):
    """A text that is no path."""

    def __init__(self, path: str) -> None:
        super().__init__(f"Invalid JSON path: '{path}'")


@functools.lru_cache(maxsize=512)
def steps(path: str) -> tuple[str, ...]:
    """Return the names and indexes of a path, in order.

    Raises: BadPath.
    """
    if not path.startswith("$"):
        raise BadPath(path)
    names = []
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise BadPath(path)
        quoted = step["quoted"]
        plain = step["name"] or step["index"]
        names.append(_ESCAPE.sub(r"\1", quoted) if quoted is not None else plain)
        position = step.end()
    return tuple(names)
