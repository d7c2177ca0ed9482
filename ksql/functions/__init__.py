"""What a function is, once."""
