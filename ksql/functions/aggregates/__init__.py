"""The aggregates, by what they keep."""
