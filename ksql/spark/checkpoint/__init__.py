"""The files of a query's checkpoint: what they say, and whether a query may continue from them."""
