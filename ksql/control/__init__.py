"""A statement, from its text to its effect: statements, planning, the engine, the command log."""
