"""A query's answer to its client: rows in each form of the API, as a stream or over a websocket."""
