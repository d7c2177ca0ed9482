"""Statements: one handler for each kind, with its effect and its answer."""
