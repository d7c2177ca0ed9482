"""A local file system for checkpoints that does not start a process for every file.

Hadoop's own sets each new file's permissions. Without its native library it runs ``chmod`` for
that, and ``readlink`` to look for links. These are forty processes and two thirds of the time of a
small stateful batch. Ours leaves permissions to the process' umask, and writes no checksums next to
files (RocksDB's and Spark's files have their own). It is two small Java classes. They are written
out here as class files, since a Java runtime brings no compiler, and used for ``local`` masters
only::

        public class RawFiles extends RawLocalFileSystem {
            public void setPermission(Path path, FsPermission permission) {}
        }
        public class LocalFiles extends LocalFileSystem {  // Hadoop casts local file systems to it
            public LocalFiles() {
                super(new RawFiles());
                setWriteChecksum(false);
                setVerifyChecksum(false);
            }
        }

Source: Hadoop's RawLocalFileSystem and FileSystem.getLocal; The Java Virtual Machine
Specification, chapter 4.
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

CLASS = "ksql.LocalFiles"
_THIS = "ksql/LocalFiles"
_PARENT = "org/apache/hadoop/fs/LocalFileSystem"
_RAW = "ksql/RawFiles"
_RAW_PARENT = "org/apache/hadoop/fs/RawLocalFileSystem"
_SET_PERMISSION = "(Lorg/apache/hadoop/fs/Path;Lorg/apache/hadoop/fs/permission/FsPermission;)V"
_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)

_PUBLIC = 0x0001
_SUPER = 0x0020
_JAVA_8 = 52


LOCAL_FILES = {
    "spark.hadoop.fs.file.impl": CLASS,
    # the other manager asks for links, by a process each
    "spark.sql.streaming.checkpointFileManagerClass": _MANAGER,
}
"""The settings that make Spark use it."""


def local_files_jar(folder: Path) -> Path:
    """Write the classes into a jar in ``folder``; return it."""
    jar = folder / "local-files.jar"
    with zipfile.ZipFile(jar, "w") as out:
        out.writestr(f"{_RAW}.class", raw_class())
        out.writestr(f"{_THIS}.class", local_class())
    return jar


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


def raw_class() -> bytes:
    """Return ``RawFiles``, compiled."""
    pool = _Pool()
    # aload_0; invokespecial super.<init>; return
    init = b"\x2a\xb7" + _ref(pool.method(_RAW_PARENT, "<init>", "()V")) + b"\xb1"
    methods = (
        _method(pool, "<init>", "()V", code=init, stack=1, locals_=1),
        _method(pool, "setPermission", _SET_PERMISSION, code=b"\xb1", stack=0, locals_=3),
    )
    return _class(pool, _RAW, _RAW_PARENT, methods)


def local_class() -> bytes:
    """Return ``LocalFiles``, compiled."""
    pool = _Pool()
    raw_init = pool.method(_RAW, "<init>", "()V")
    parent_init = pool.method(_PARENT, "<init>", "(Lorg/apache/hadoop/fs/FileSystem;)V")
    # aload_0; new RawFiles; dup; invokespecial RawFiles.<init>; invokespecial super.<init>
    code = b"\x2a\xbb" + _ref(pool.class_(_RAW)) + b"\x59\xb7" + _ref(raw_init)
    code += b"\xb7" + _ref(parent_init)
    for switch in ("setWriteChecksum", "setVerifyChecksum"):
        # aload_0; iconst_0; invokevirtual
        code += b"\x2a\x03\xb6" + _ref(pool.method(_PARENT, switch, "(Z)V"))
    init = _method(pool, "<init>", "()V", code=code + b"\xb1", stack=3, locals_=1)
    return _class(pool, _THIS, _PARENT, (init,))


def _ref(index: int) -> bytes:
    return struct.pack(">H", index)


def _class(pool: _Pool, name: str, parent_name: str, methods: tuple[bytes, ...]) -> bytes:
    this, parent = pool.class_(name), pool.class_(parent_name)
    body = struct.pack(">HHHHHH", _PUBLIC | _SUPER, this, parent, 0, 0, len(methods))
    head = struct.pack(">IHH", 0xCAFEBABE, 0, _JAVA_8)
    return head + pool.bytes() + body + b"".join(methods) + struct.pack(">H", 0)


def _method(
    pool: _Pool, name: str, signature: str, *, code: bytes, stack: int, locals_: int
) -> bytes:
    attribute = struct.pack(">HHI", stack, locals_, len(code)) + code + struct.pack(">HH", 0, 0)
    head = struct.pack(">HHHH", _PUBLIC, pool.text(name), pool.text(signature), 1)
    return head + struct.pack(">HI", pool.text("Code"), len(attribute)) + attribute
