"""The definition of every function, in one place."""
