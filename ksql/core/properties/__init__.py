"""The table of properties: one row for each, with its type, default, bounds and meaning."""
