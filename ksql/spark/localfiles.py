"""A local file system for checkpoints that does not start a process for every file.

Hadoop's own sets each new file's permissions; without its native library it does so by running
``chmod``, and looks for links by running ``readlink``: forty processes and two thirds of the time
of a small stateful batch. Ours leaves permissions to the process' umask. It is one Java class of
two methods,

    public class LocalFiles extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) {}
    }

written out here as a class file, since a Java runtime brings no compiler. Used for ``local``
masters only.

Source: Hadoop's RawLocalFileSystem; The Java Virtual Machine Specification, chapter 4.
"""

from __future__ import annotations

import struct
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CLASS = "ksql.LocalFiles"
_PARENT = "org/apache/hadoop/fs/RawLocalFileSystem"
_SET_PERMISSION = "(Lorg/apache/hadoop/fs/Path;Lorg/apache/hadoop/fs/permission/FsPermission;)V"
_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)

_PUBLIC = 0x0001
_SUPER = 0x0020
_JAVA_8 = 52


def local_files_conf(folder: Path) -> Mapping[str, str]:
    """Write the class into a jar in ``folder``; returns the settings that make Spark use it."""
    jar = folder / "local-files.jar"
    with zipfile.ZipFile(jar, "w") as out:
        out.writestr(f"{CLASS.replace('.', '/')}.class", class_file())
    return {
        "spark.driver.extraClassPath": str(jar),
        "spark.hadoop.fs.file.impl": CLASS,
        # the other manager asks for links, by a process each
        "spark.sql.streaming.checkpointFileManagerClass": _MANAGER,
    }


class _Pool:
    """A class file's constants; every reference is an index from 1."""

    def __init__(self) -> None:
        self._entries: list[bytes] = []

    def _add(self, entry: bytes) -> int:
        if entry not in self._entries:
            self._entries.append(entry)
        return self._entries.index(entry) + 1

    def text(self, value: str) -> int:
        data = value.encode()
        return self._add(struct.pack(">BH", 1, len(data)) + data)

    def class_(self, name: str) -> int:
        return self._add(struct.pack(">BH", 7, self.text(name)))

    def method(self, owner: str, name: str, signature: str) -> int:
        both = self._add(struct.pack(">BHH", 12, self.text(name), self.text(signature)))
        return self._add(struct.pack(">BHH", 10, self.class_(owner), both))

    def bytes(self) -> bytes:
        return struct.pack(">H", len(self._entries) + 1) + b"".join(self._entries)


def class_file() -> bytes:
    """The compiled class."""
    pool = _Pool()
    this, parent = pool.class_(CLASS.replace(".", "/")), pool.class_(_PARENT)
    parent_init = pool.method(_PARENT, "<init>", "()V")
    # aload_0; invokespecial parent; return
    init = b"\x2a\xb7" + struct.pack(">H", parent_init) + b"\xb1"
    methods = (
        _method(pool, "<init>", "()V", code=init, stack=1, locals_=1),
        _method(pool, "setPermission", _SET_PERMISSION, code=b"\xb1", stack=0, locals_=3),
    )
    body = struct.pack(">HHHHHH", _PUBLIC | _SUPER, this, parent, 0, 0, len(methods))
    head = struct.pack(">IHH", 0xCAFEBABE, 0, _JAVA_8)
    return head + pool.bytes() + body + b"".join(methods) + struct.pack(">H", 0)


def _method(
    pool: _Pool, name: str, signature: str, *, code: bytes, stack: int, locals_: int
) -> bytes:
    attribute = struct.pack(">HHI", stack, locals_, len(code)) + code + struct.pack(">HH", 0, 0)
    head = struct.pack(">HHHH", _PUBLIC, pool.text(name), pool.text(signature), 1)
    return head + struct.pack(">HI", pool.text("Code"), len(attribute)) + attribute
