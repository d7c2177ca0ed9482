"""Queries hosted in memory, for tests and fast feedback."""
