"""Ships the workers' code with the query: this package as a zip, named by its content."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

_STAMP = (1980, 1, 1, 0, 0, 0)
_KINDS = {".py", ".lark", ".toml", ".json", ".sql"}


def package_zip(package: Path, target: Path) -> Path:
    """Pack a package's files into ``target``; equal content gives an equal file name."""
    files = sorted(p for p in package.rglob("*") if p.suffix in _KINDS and p.is_file())
    digest = hashlib.sha256()
    for path in files:
        digest.update(str(path.relative_to(package)).encode())
        digest.update(path.read_bytes())
    target.mkdir(parents=True, exist_ok=True)
    archive = target / f"{package.name}-{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for path in files:
            name = str(Path(package.name) / path.relative_to(package))
            out.writestr(zipfile.ZipInfo(name, _STAMP), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return archive
