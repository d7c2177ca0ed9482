"""The list of retriable errors is Kafka's own: its client's table, read by Java."""

from __future__ import annotations

import subprocess

from ksql.core.process.jars import jar_files
from ksql.core.process.jvm import find_java
from ksql.kafka.errors import RETRIABLE

TABLE = """
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
public class Table {
  public static void main(String[] none) {
    for (Errors one : Errors.values())
      if (one.exception() instanceof RetriableException) System.out.println(one.code());
  }
}
"""


def test_all_errors_that_java_tries_again(tmp_path):
    source = tmp_path / "Table.java"
    source.write_text(TABLE)
    path = ":".join(str(jar) for jar in jar_files("broker"))
    output = subprocess.run(
        [find_java().path, "-cp", path, source], capture_output=True, text=True, check=True
    )
    assert {int(line) for line in output.stdout.split()} == RETRIABLE
