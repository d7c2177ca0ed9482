"""An upgrade has the user who has asked for it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    with op.batch_alter_table("upgrades") as table:
        table.add_column(sa.Column("user_name", sa.Text(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("upgrades") as table:
        table.drop_column("user_name")
