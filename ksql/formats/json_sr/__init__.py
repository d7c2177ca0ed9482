"""JSON_SR: JSON with a registered schema."""
