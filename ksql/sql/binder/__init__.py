"""Names, types and clauses: the meaning of a query, found or refused before it runs."""
