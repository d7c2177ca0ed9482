"""The sources, types and queries that exist, as one immutable snapshot."""
