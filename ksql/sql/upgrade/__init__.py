"""May a running query be replaced, and what holds across the switch."""
