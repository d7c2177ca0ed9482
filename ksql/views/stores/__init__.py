"""The materialized answer by key, and how far it has read."""
