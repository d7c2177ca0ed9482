"""The joins: stream with table, stream with stream, table with table, by a foreign key."""
