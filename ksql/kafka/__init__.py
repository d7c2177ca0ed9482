"""Kafka: topics, producers, transactions, the embedded broker; the only user of its client."""
