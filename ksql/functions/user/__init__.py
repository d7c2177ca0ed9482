"""Functions that users write in Python: declared by decorators, loaded from a directory."""
