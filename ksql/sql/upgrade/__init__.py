"""May a running query be replaced, and what holds across the switch."""

from __future__ import annotations

from ksql.sql.upgrade.code import as_run, code_of, hazards, other_code
from ksql.sql.upgrade.settings import LISTED, RESET, inherited, inherited_properties, notes
from ksql.sql.upgrade.validate import validate_upgrade
from ksql.sql.upgrade.verdict import (
    Difference,
    Guarantee,
    ReplacementKind,
    Trait,
    UpgradeClass,
    Verdict,
)

__all__ = [
    "LISTED",
    "RESET",
    "Difference",
    "Guarantee",
    "ReplacementKind",
    "Trait",
    "UpgradeClass",
    "Verdict",
    "as_run",
    "code_of",
    "hazards",
    "inherited",
    "inherited_properties",
    "notes",
    "other_code",
    "validate_upgrade",
]
