"""``ksql migrations``: numbered files of statements, each applied once, in order."""
