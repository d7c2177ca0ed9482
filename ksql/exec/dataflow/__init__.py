"""A plan as running code, and what hosts it; no Spark, no Kafka client."""
