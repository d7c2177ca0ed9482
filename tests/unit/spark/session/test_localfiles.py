from __future__ import annotations

import struct
import zipfile

from ksql.spark.session.localfiles import CLASS, LOCAL_FILES, local_files_jar


def test_the_jar_holds_class_files_under_their_names(tmp_path):
    with zipfile.ZipFile(local_files_jar(tmp_path)) as jar:
        names = set(jar.namelist())
        heads = {struct.unpack(">IHH", jar.read(name)[:8]) for name in names}
    assert f"{CLASS.replace('.', '/')}.class" in names
    assert heads == {(0xCAFEBABE, 0, 52)}
    assert LOCAL_FILES["spark.hadoop.fs.file.impl"] == CLASS
