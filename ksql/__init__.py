"""The engine: SQL text in, running Spark queries and their answers out."""
