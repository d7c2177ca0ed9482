"""Java's meaning of dates, patterns, URIs, lenient JSON, text and numbers, as ksqlDB shows it."""
