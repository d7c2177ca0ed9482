"""A race with Kafka Streams over the same topics: `python -m tests.bench peers`."""
