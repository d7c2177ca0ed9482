"""Alembic's environment and versions for the ledger's database."""
