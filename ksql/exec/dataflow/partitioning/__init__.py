"""Keys as bytes, the partitions that they belong to, and how results get there in order."""
