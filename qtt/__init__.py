"""Test files in the format of ksqlDB's query tests: loaded, run on a driver, judged."""
