"""An upgrade has a mode; a rebuild also has its candidate and the counts of its difference."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    with op.batch_alter_table("upgrades") as table:
        table.add_column(
            sa.Column("mode", sa.String(16), nullable=False, server_default="in_place")
        )
        table.add_column(sa.Column("candidate", sa.BigInteger(), nullable=True))
        table.add_column(sa.Column("difference", sa.JSON(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("upgrades") as table:
        for name in ("mode", "candidate", "difference"):
            table.drop_column(name)
