"""Kafka and bytes; the only user of the Kafka client."""
