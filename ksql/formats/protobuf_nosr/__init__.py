"""PROTOBUF_NOSR: messages without a registry."""
