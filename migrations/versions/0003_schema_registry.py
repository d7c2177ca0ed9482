"""The embedded schema registry: schemas, subjects and their versions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "registry_schemas",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("guid", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_registry_schemas"),
        sa.UniqueConstraint("guid", name="uq_registry_schemas_guid"),
    )
    op.create_table(
        "registry_references",
        sa.Column("schema_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("subject", sa.String(600), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("schema_id", "position", name="pk_registry_references"),
        sa.ForeignKeyConstraint(
            ["schema_id"], ["registry_schemas.id"], name="fk_registry_references_schema_id"
        ),
    )
    op.create_index("ix_registry_references_subject", "registry_references", ["subject"])
    op.create_table(
        "registry_subjects",
        sa.Column("subject", sa.String(600), nullable=False),
        sa.Column("last_version", sa.Integer(), nullable=False),
        sa.Column("compatibility", sa.String(32), nullable=True),
        sa.Column("mode", sa.String(16), nullable=True),
        sa.Column("normalize", sa.Boolean(), nullable=True),
        sa.PrimaryKeyConstraint("subject", name="pk_registry_subjects"),
    )
    op.create_table(
        "registry_versions",
        sa.Column("subject", sa.String(600), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("schema_id", sa.BigInteger(), nullable=False),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("subject", "version", name="pk_registry_versions"),
        sa.ForeignKeyConstraint(
            ["subject"], ["registry_subjects.subject"], name="fk_registry_versions_subject"
        ),
        sa.ForeignKeyConstraint(
            ["schema_id"], ["registry_schemas.id"], name="fk_registry_versions_schema_id"
        ),
    )
    op.create_index("ix_registry_versions_schema_id", "registry_versions", ["schema_id"])


def downgrade() -> None:
    op.drop_table("registry_versions")
    op.drop_table("registry_subjects")
    op.drop_table("registry_references")
    op.drop_table("registry_schemas")
