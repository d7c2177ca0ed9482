"""Answers to SELECT: pull, push and PRINT."""
