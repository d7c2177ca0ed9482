"""Processes of this machine: children, locks, the lease to write, Java and its jars."""
