"""The doors: HTTP over the service, and a terminal that talks HTTP."""
