"""An upgrade keeps its changes and the settings that it inherited; earlier ones have none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_NAMES = ("changes", "inherited")


def upgrade() -> None:
    with op.batch_alter_table("upgrades") as table:
        for name in _NAMES:
            table.add_column(sa.Column(name, sa.JSON(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("upgrades") as table:
        for name in _NAMES:
            table.drop_column(name)
