"""What a query does, as typed, frozen, storable nodes."""
