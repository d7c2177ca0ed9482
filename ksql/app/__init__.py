"""The composition root: the one package that sees every layer."""
