"""Looks at files before they are committed: no merge marks, no keys, nothing huge, a last newline.

``python tests/hygiene.py FILE..`` prints what is wrong and exits with 1; called by pre-commit.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LARGEST_BYTES = 1_000_000
_RULES = {
    "has a merge mark": re.compile(rb"^(<{7} |>{7} |={7}$)", re.MULTILINE),
    "holds a private key": re.compile(rb"-----BEGIN (\w+ )*PRIVATE KEY-----"),
}


def faults(path: Path) -> list[str]:
    """What is wrong with one file."""
    data = path.read_bytes()
    names = [fault for fault, pattern in _RULES.items() if pattern.search(data)]
    if len(data) > LARGEST_BYTES:
        names.append(f"is larger than {LARGEST_BYTES} bytes")
    if data and b"\0" not in data and not data.endswith(b"\n"):
        names.append("does not end with a newline")
    return names


def main(names: list[str]) -> int:
    """Prints every fault of every file; 1 when there is one."""
    reports = [f"{name}: {fault}" for name in names for fault in faults(Path(name))]
    sys.stdout.writelines(f"{line}\n" for line in reports)
    return bool(reports)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
