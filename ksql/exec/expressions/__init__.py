"""A bound expression as a Python function of one row: the reference meaning of the language."""
