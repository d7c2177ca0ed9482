"""KAFKA: single values as Kafka's own serializers write them."""
