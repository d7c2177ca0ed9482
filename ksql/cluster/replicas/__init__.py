"""The copies of a table's rows: which servers hold them, how far each is, how one is read."""
