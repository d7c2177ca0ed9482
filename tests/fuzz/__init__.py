"""Random and broken input, for as long as wanted."""
