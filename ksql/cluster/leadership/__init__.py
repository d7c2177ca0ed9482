"""Leader election: which server leads a service, and what its followers do."""
