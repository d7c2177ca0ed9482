"""Random queries over the same records in other micro-batches: the results must be the same."""
