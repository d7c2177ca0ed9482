"""Processes of this machine: children, locks, the lease to write, Java and its jars."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.core.process import lease
    from ksql.core.process.apart import is_readable, run_apart, start_python
    from ksql.core.process.child import Child
    from ksql.core.process.class_archive import *
    from ksql.core.process.jars import *
    from ksql.core.process.jvm import *
    from ksql.core.process.lease import *
    from ksql.core.process.lock import *
    from ksql.core.process.periodic import *
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "apart": "is_readable run_apart start_python",
            "child": "Child",
            "class_archive": "ARCHIVE_NAME archive_options compared java_identity",
            "jars": "Jar JarSet LOCK cache_dir jar_dir jar_files locked present sha256",
            "jvm": "Java as_admin find_java",
            "lease": "Lease NotLeader",
            "lock": "DirectoryBusy FileLock await_predecessors",
            "periodic": "PeriodicWorker RepeatedFailure call_within in_background "
            "in_background_or_here try_in_background",
        },
    )
