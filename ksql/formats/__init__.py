"""Formats: the bytes of a record to values and back. One folder and one row of the table each."""
