"""The Pythons that Spark starts: those of its workers, and one for each start of a stateful query.

The latter asks for the schema of the state and would load PySpark for it, most of a second of a
core. ``stateschema`` answers at once. Spark knows one command for both. Where all processes run on
this machine, that command is a script of ours. Executors elsewhere have no such script, so there
the driver's own Pythons find a ``sitecustomize`` module. It is the first that they load.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Final

from ksql.spark.checkpoint import stateschema
from ksql.spark.session.jvm import is_local

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.spark.session.jvm import SparkSettings

_PATH: Final = "PYTHONPATH"
_SITE: Final = "site"
_COMMAND: Final = """\
#!/bin/sh
[ "$1 $2" = "-m {module}" ] && exec {python} -I -S {script}
exec {python} "$@"
"""
_CUSTOMIZE: Final = """\
import sys

if sys.orig_argv[1:3] == ["-m", {module!r}]:
    import os

    os.execv(sys.executable, [sys.executable, "-I", "-S", {script!r}])
"""


def workers_python(settings: SparkSettings) -> str:
    """Return the command of Spark's workers."""
    if not is_local(settings.master):
        return settings.python
    command = settings.scratch / "python"
    python, script = map(shlex.quote, (settings.python, stateschema.__file__))
    command.write_text(
        _COMMAND.format(module=stateschema.MODULE, python=python, script=script), encoding="utf-8"
    )
    command.chmod(0o700)
    return str(command)


def drivers_environment(settings: SparkSettings) -> Mapping[str, str]:
    """Return what the JVM's environment has besides ours; a path that is there comes first."""
    if is_local(settings.master):
        return {}
    site = settings.scratch / _SITE
    site.mkdir(mode=0o700, exist_ok=True)
    text = _CUSTOMIZE.format(module=stateschema.MODULE, script=stateschema.__file__)
    (site / "sitecustomize.py").write_text(text, encoding="utf-8")
    return {_PATH: os.pathsep.join(filter(None, (os.environ.get(_PATH), str(site))))}
