"""Spark's JVM and session, and what they are given at their start."""
