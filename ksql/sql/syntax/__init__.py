"""Text to tree and back; the only user of Lark."""
