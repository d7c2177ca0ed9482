"""Nexmark here and in Flink SQL over the same topics: `python -m tests.bench nexmark`."""
