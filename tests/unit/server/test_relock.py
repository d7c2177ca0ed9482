"""The lock file of the jars: what is resolved is written so that the set-up reads it back."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

from ksql.core.process.jars import locked
from server.tools import relock


class Maven:
    """Resolves to the roots, one more that is needed at run time, and one for tests only."""

    def __init__(self, folder):
        self.folder = folder
        self.resolver = self

    def create_dependency(self, name, scope=None):
        group, artifact, version = name.split(":")
        file = self.folder / f"{artifact}-{version}.jar"
        file.write_text(name)
        return SimpleNamespace(
            groupId=group,
            artifactId=artifact,
            version=version,
            scope=scope,
            artifact=SimpleNamespace(resolve=lambda: file),
        )

    def resolve(self, roots):
        return roots, [
            self.create_dependency("org.x:needed:1", "runtime"),
            self.create_dependency("org.x:tests:1", "test"),
        ]


def test_the_lock_file_is_written_as_it_is_read(tmp_path, monkeypatch):
    lock = tmp_path / "jars.toml"
    monkeypatch.setattr(relock, "MavenContext", lambda timeout: Maven(tmp_path))
    monkeypatch.setattr(relock, "LOCK", lock)
    relock.main()
    packages = locked(lock)
    names = [jar.coordinate for jar in packages]
    assert names == [
        *relock.BROKER_ROOTS,
        "org.x:needed:1",
        *relock.SPARK_FILES,
        *relock.CONNECT_ROOTS,  # what they need is the broker's
        relock.CONNECT_PLUGIN,
    ]
    sets = ["broker"] * 6 + ["spark"] * 4 + ["connect", "connect-file"]
    assert [jar.which for jar in packages] == sets
    needed = packages[5]
    assert needed.sha256 == hashlib.sha256(b"org.x:needed:1").hexdigest()
    assert needed.size_bytes == len(b"org.x:needed:1")
