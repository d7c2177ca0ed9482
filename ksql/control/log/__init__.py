"""The order of truth: statements as records of one topic."""
