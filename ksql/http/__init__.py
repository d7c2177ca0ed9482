"""HTTP for both applications: who may ask, the sockets, the server, HTTP/1.1 and HTTP/2, TLS."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.http.access import ADVERTISED, INTERNAL, Access, BodyTooLong, guard, is_loopback
from ksql.http.compression import Compression
from ksql.http.connections import Connections, Listening, listen, url
from ksql.http.hosting import HttpServer, ServerThread
from ksql.http.tls import Renewable, client_context, server_context
from ksql.http.websocket import LONGEST_TARGET
