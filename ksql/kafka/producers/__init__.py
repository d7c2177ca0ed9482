"""Writes records to Kafka: for the service, for many threads, for Spark's workers."""
