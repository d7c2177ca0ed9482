"""HTTP for both applications: who may ask, the sockets, the server, HTTP/1.1 and HTTP/2, TLS."""
