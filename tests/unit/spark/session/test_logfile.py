"""Spark's log is bounded while others have it open."""

from __future__ import annotations

from ksql.spark.session.jvm_supervisor import rotate


def written(folder, file):
    with file.open("ab", buffering=0) as log:
        for line in range(1_000):
            log.write(b"line %04d\n" % line)
            rotate(file, 1_000, 2)
    return sorted(folder.iterdir())


def test_it_and_its_former_files_are_bounded_and_no_writer_reopens_it(tmp_path):
    file = tmp_path / "spark.log"
    files = written(tmp_path, file)
    assert [each.name for each in files] == ["spark.log", "spark.log.1", "spark.log.2"]
    assert all(each.stat().st_size <= 1_010 for each in files)
    lines = b"".join(each.read_bytes() for each in reversed(files)).splitlines()
    first = int(lines[0][5:])
    assert lines == [b"line %04d" % line for line in range(first, 1_000)]


def test_a_small_one_stays_and_none_is_fine(tmp_path):
    file = tmp_path / "spark.log"
    assert not rotate(file, 1_000)
    file.write_bytes(b"x" * 1_000)
    assert not rotate(file, 1_000)
    assert [each.name for each in tmp_path.iterdir()] == ["spark.log"]
