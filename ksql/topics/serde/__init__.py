"""One module per format, strangers to one another; ``ksql.topics.formats`` knows them all."""
