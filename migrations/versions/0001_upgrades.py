"""Upgrades of running queries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "upgrades",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("id", sa.String(600), nullable=False),
        sa.Column("service_id", sa.String(255), nullable=False),
        sa.Column("query_id", sa.String(300), nullable=False),
        sa.Column("sink", sa.Text(), nullable=False),
        sa.Column("statement_old", sa.Text(), nullable=False),
        sa.Column("statement_new", sa.Text(), nullable=False),
        sa.Column("plan_old", sa.JSON(), nullable=True),
        sa.Column("plan_new", sa.JSON(), nullable=True),
        sa.Column("classes", sa.JSON(), nullable=False),
        sa.Column("traits", sa.JSON(), nullable=False),
        sa.Column("guarantees", sa.JSON(), nullable=False),
        sa.Column("accepted", sa.Boolean(), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("command_offset", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("batch_id", sa.BigInteger(), nullable=True),
        sa.Column("offsets", sa.JSON(), nullable=True),
        sa.Column("gap_ms", sa.BigInteger(), nullable=True),
        sa.Column("outcome_reason", sa.Text(), nullable=False),
        sa.Column("rebuilt", sa.Boolean(), nullable=False),
        sa.Column("begun_ms", sa.BigInteger(), nullable=False),
        sa.Column("finished_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("seq", name="pk_upgrades"),
        sa.UniqueConstraint("id", name="uq_upgrades_id"),
        sa.UniqueConstraint(
            "service_id", "query_id", "command_offset", name="uq_upgrades_service_id"
        ),
    )
    op.create_index("ix_upgrades_query_id", "upgrades", ["query_id"])


def downgrade() -> None:
    op.drop_index("ix_upgrades_query_id", "upgrades")
    op.drop_table("upgrades")
