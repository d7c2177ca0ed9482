from __future__ import annotations

import stat


def test_hadoop_takes_our_local_files_for_its_own(runtime, tmp_path):
    jvm = runtime.session.sparkContext._jvm
    conf = runtime.session.sparkContext._jsc.hadoopConfiguration()
    files = jvm.org.apache.hadoop.fs.FileSystem.getLocal(conf)
    assert files.getClass().getName() == "ksql.LocalFiles"
    source = tmp_path / "source"
    source.write_text("text")
    path = jvm.org.apache.hadoop.fs.Path
    files.copyFromLocalFile(path(str(source)), path(str(tmp_path / "deep" / "copy")))
    assert (tmp_path / "deep" / "copy").read_text() == "text"
    # no file with a checksum beside it, and as readable as any file of this process
    assert [each.name for each in (tmp_path / "deep").iterdir()] == ["copy"]
    modes = {stat.S_IMODE(each.stat().st_mode) for each in (source, tmp_path / "deep" / "copy")}
    assert len(modes) == 1
