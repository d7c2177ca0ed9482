"""The pure steps from a parsed statement to a command: resolve, plan, compare, effects."""
