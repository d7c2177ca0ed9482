"""The code generator: a batch's way through a stage as one generated function."""
