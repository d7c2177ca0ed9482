"""Random chains of queries over several partitions: equal in all batches, and in order."""
