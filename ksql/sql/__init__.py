"""Turns text into a plan, and judges two plans: syntax, binder, catalog, plan, upgrade."""
