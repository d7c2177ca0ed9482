"""DELIMITED: separated values."""
