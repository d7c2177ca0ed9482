"""A service's memory saved and brought back: its topics, and its state directory."""
