"""SQL's types and the shape of a row."""
