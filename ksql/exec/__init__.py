"""A plan becomes a program over batches of records; it knows neither Kafka nor Spark."""
