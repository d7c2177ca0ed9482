"""PROTOBUF."""
