"""Names, types and clauses: what a query means, told or refused before anything runs."""
