from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ksql.spark.session.cds_archive import shared_stand


@pytest.mark.skipif(sys.platform != "linux", reason="looks at what a process has mapped")
def test_the_archive_that_the_set_up_has_written_is_taken(runtime, spark_settings):
    archive = shared_stand(spark_settings.jars).archive
    if not archive.exists():
        pytest.skip("the set-up could not write one")
    process = runtime.session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    mapped = Path(f"/proc/{process}/maps").read_text()
    assert str(archive) in mapped
