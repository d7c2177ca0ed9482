"""The embedded schema registry: Confluent's rules and REST interface over the ledger's database."""
