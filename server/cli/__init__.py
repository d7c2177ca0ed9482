"""A person's terminal; it talks HTTP only and knows nothing of the engine."""
