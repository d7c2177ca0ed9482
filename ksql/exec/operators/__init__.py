"""Stateful operators as plain Python over a small store."""
