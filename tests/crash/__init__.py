"""Servers, Spark's JVMs and brokers killed at every write, and what they leave compared to a model.

``make proof-crash`` kills at each point once and prints a table; ``make proof-soak`` kills at
random under load. Both need minutes, neither is part of ``make test``.
"""
