"""The report of a run, and whether it is good: known gaps are in ``expect.toml``."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from qtt.model import Result


def known_gaps(driver: str) -> Mapping[str, str]:
    """The cases that may fail, with the reason; those of the other driver are left out."""
    text = (resources.files("qtt") / "expect.toml").read_text()
    return {
        case["id"]: case["reason"]
        for case in tomllib.loads(text).get("case", ())
        if case.get("driver", driver) == driver
    }


def write(path: Path, driver: str, results: Sequence[Result]) -> None:
    """The report as JSON."""
    counts = Counter(result.status for result in results)
    cases = [
        {
            "id": r.id,
            "status": r.status,
            "seconds": round(r.seconds, 3),
            "reason": r.reason,
        }
        for r in results
    ]
    body = {
        "driver": driver,
        "cases": cases,
        **{status: counts[status] for status in ("passed", "failed", "unsupported")},
    }
    path.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n")


def judge(driver: str, results: Sequence[Result]) -> list[str]:
    """Return the faults of a run: failures that are not listed, and listed cases that pass."""
    gaps = known_gaps(driver)
    problems = [f"FAILED {r.id}\n    {r.reason}" for r in results if _is_new(r, gaps)]
    problems += [
        f"PASSES but is listed as a gap: {r.id}"
        for r in results
        if r.status == "passed" and r.id in gaps
    ]
    return problems


def _is_new(result: Result, gaps: Mapping[str, str]) -> bool:
    return result.status == "failed" and result.id not in gaps
