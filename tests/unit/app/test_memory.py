"""The memory of a server's processes, from a /proc of files."""

from __future__ import annotations

import os

import pytest

from ksql.app.metrics.observer import memory_by_role

PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def proc(tmp_path):
    def process(pid, pages, command, *children):
        task = tmp_path / str(pid) / "task" / str(pid)
        task.mkdir(parents=True)
        (task / "children").write_text(" ".join(map(str, children)))
        (tmp_path / str(pid) / "statm").write_text(f"99 {pages} 0")
        (tmp_path / str(pid) / "cmdline").write_bytes(command.replace(" ", "\0").encode())

    process(1, 10, "python ksql", 2, 3, 6, 7)
    process(2, 20, "/opt/bin/java -cp x kafka.Kafka server.properties")
    process(3, 30, "java org.apache.spark.deploy.SparkSubmit", 4)
    process(4, 40, "python -m pyspark.daemon", 5)
    process(5, 50, "python -m pyspark.daemon")
    process(6, 60, "python udf")
    return tmp_path  # 7 has ended


def test_each_process_counts_for_what_it_is(proc):
    assert memory_by_role(1, proc) == {
        "server": 10 * PAGE,
        "kafka": 20 * PAGE,
        "spark": 30 * PAGE,
        "worker": 90 * PAGE,
        "other": 60 * PAGE,
    }


def test_without_such_files_nothing_is_known(tmp_path):
    assert memory_by_role(1, tmp_path) == {}
