"""A plan becomes a running dataflow; the only user of PySpark."""
