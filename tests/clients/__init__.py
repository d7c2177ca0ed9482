"""Clients of ksqlDB, unchanged from their registries, against a server of ours."""
