"""A running query on Spark: start, supervision, replacement, metrics."""
