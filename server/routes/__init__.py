"""One module per family of endpoints; they do not know each other."""
