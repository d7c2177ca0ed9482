"""Compiles the Java files of ``ksql/spark`` into the jar next to them.

Maintainers run it after one was changed: ``python -m ksql.spark.session.rangesjar``; it needs a
JDK. The service needs none: it has the jar, which holds the sources' checksums, and a test
compares.
"""

from __future__ import annotations

import subprocess
import tempfile
import zipfile
from pathlib import Path

import pyspark

from ksql.core.process import jar_files, sha256
from ksql.spark.session.source import SOURCE_JAR

SOURCE_CODE = sorted(Path(__file__).parent.glob("*.java"))
DIGEST = "ksql/{}.sha256"
_MANIFEST = "META-INF/MANIFEST.MF"
_STAMP = (1980, 1, 1, 0, 0, 0)
_JAVA = "17"  # the oldest that this Spark runs on


def main() -> None:
    """Compile it and write the jar."""
    spark = Path(pyspark.__file__).parent / "jars"
    path = ":".join([f"{spark}/*", *map(str, jar_files("spark"))])
    with tempfile.TemporaryDirectory() as folder:
        compiler = ("javac", "--release", _JAVA, "-g:none", "-cp", path, "-d", folder)
        subprocess.run((*compiler, *map(str, SOURCE_CODE)), check=True)  # noqa: S603 - our own command
        classes = sorted(Path(folder).rglob("*.class"))
        with zipfile.ZipFile(SOURCE_JAR, "w") as out:
            out.writestr(zipfile.ZipInfo(_MANIFEST, _STAMP), "Manifest-Version: 1.0\n\n")
            for code in SOURCE_CODE:
                entry = zipfile.ZipInfo(DIGEST.format(code.name), _STAMP)
                out.writestr(entry, f"{sha256(code)}\n")
            for file in classes:
                name = str(file.relative_to(folder))
                entry = zipfile.ZipInfo(name, _STAMP)
                out.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
