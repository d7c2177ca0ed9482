"""Kafka and bytes: topics, records, formats, schema registries."""
