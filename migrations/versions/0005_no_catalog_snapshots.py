"""Catalog snapshots go: nothing read them, the catalog is made from the command topic."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.drop_table("catalog_snapshots")


def downgrade() -> None:
    op.create_table(
        "catalog_snapshots",
        sa.Column("service_id", sa.String(255), nullable=False),
        sa.Column("command_offset", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("format_version", sa.Integer(), nullable=False),
        sa.Column("catalog", sa.JSON(), nullable=False),
        sa.Column("taken_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("service_id", "command_offset", name="pk_catalog_snapshots"),
    )
