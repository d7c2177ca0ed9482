"""The paths of a server's state."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ksql.core.config import Settings


def directory(settings: Settings) -> Path:
    """Return where the state lies."""
    return Path(settings.text("ksql.state.dir") or default_dir()).expanduser().absolute()


def default_dir() -> Path:
    """Return where state lies if nothing is configured."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "ksql-spark"
