"""May a running query be replaced, and what holds across the switch."""

# mypy: implicit-reexport
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
