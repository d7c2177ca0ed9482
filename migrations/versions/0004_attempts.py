"""Several attempts may have had the same offset in view; the one that counts is marked."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"

_NAME = "uq_upgrades_service_id"
_COLUMNS = ["service_id", "query_id", "command_offset"]


def upgrade() -> None:
    with op.batch_alter_table("upgrades") as table:
        table.drop_constraint(_NAME, type_="unique")


def downgrade() -> None:
    with op.batch_alter_table("upgrades") as table:
        table.create_unique_constraint(_NAME, _COLUMNS)
