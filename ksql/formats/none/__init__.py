"""NONE: no key."""
