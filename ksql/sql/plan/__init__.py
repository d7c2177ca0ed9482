"""The meaning of a query as typed, frozen, storable nodes."""
