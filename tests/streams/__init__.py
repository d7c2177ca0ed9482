"""Our results beside those of Kafka Streams, record by record, over generated inputs."""
