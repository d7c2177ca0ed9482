"""Chains of replacements made at random, compared with a model written apart."""
