"""Writes the jars' lock file again: resolves the roots, downloads what they need, notes checksums.

Maintainers run it after a version was changed here: ``python -m server.tools.relock``.
"""

from __future__ import annotations

from jgo.maven import Dependency, MavenContext

from ksql.core.process import LOCK, JarSet, sha256

# Resolution alone would pick older clients next to the broker: they are named explicitly.
BROKER_ROOTS = (
    "org.apache.kafka:kafka_2.13:4.1.1",
    "org.apache.kafka:kafka-clients:4.1.1",
    "org.apache.kafka:kafka-server-common:4.1.1",
    "org.apache.logging.log4j:log4j-core:2.25.1",
    "org.apache.logging.log4j:log4j-slf4j2-impl:2.25.1",
)
# All that PySpark's own distribution lacks; what these depend on is part of it.
SPARK_FILES = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
CONNECT_ROOTS = ("org.apache.kafka:connect-runtime:4.1.1",)
CONNECT_PLUGIN = "org.apache.kafka:connect-file:4.1.1"
_HEADER = "# Written by `python -m server.tools.relock`; one row per file, in class path order.\n"


def main() -> None:
    """Resolve all sets and write the lock file."""
    context = MavenContext(timeout=60)
    broker = _resolved(context, BROKER_ROOTS)
    names = {dep.artifactId for dep in broker}
    connect = [dep for dep in _resolved(context, CONNECT_ROOTS) if dep.artifactId not in names]
    spark = [context.create_dependency(name) for name in SPARK_FILES]
    rows = [
        *(_row(dep, "broker") for dep in broker),
        *(_row(dep, "spark") for dep in spark),
        *(_row(dep, "connect") for dep in connect),
        _row(context.create_dependency(CONNECT_PLUGIN), "connect-file"),
    ]
    LOCK.write_text(_HEADER + "".join(rows), encoding="utf-8")


def _resolved(context: MavenContext, roots: tuple[str, ...]) -> list[Dependency]:
    """Return the roots with all that they need at run time."""
    inputs, transitive = context.resolver.resolve([context.create_dependency(r) for r in roots])
    return [dep for dep in (*inputs, *transitive) if dep.scope in (None, "compile", "runtime")]


def _row(dependency: Dependency, which: JarSet) -> str:
    path = dependency.artifact.resolve()
    coordinate = f"{dependency.groupId}:{dependency.artifactId}:{dependency.version}"
    return (
        f'\n[[jar]]\ncoordinate = "{coordinate}"\nsha256 = "{sha256(path)}"\n'
        f'bytes = {path.stat().st_size}\nset = "{which}"\n'
    )


if __name__ == "__main__":
    main()
