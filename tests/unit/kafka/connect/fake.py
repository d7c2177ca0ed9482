"""A few paths of Kafka Connect's REST interface over a dictionary, and ways to break them."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
PLUGINS = [
    {"class": FILE_SOURCE, "type": "source", "version": "4.1.1"},
    {"class": FILE_SINK, "type": "sink", "version": "4.1.1"},
]


class FakeConnect:
    """The worker: connectors by name, and what the next answers are to be."""

    def __init__(self):
        self.connectors = {}
        self.statuses = {}
        self.active = {}
        self.problems = {}
        self.requests = []
        self.headers = []
        self.odd = {}
        """What is done instead of an answer, by method and path: a list of functions."""
        self.url = ""

    def instead(self, method, path, *answers):
        """Give those answers, in turn, to the next requests of that kind."""
        self.odd[method, path] = list(answers)

    def put(self, name, config, tasks=1, state="RUNNING", trace=None):
        """Have a connector, with tasks of that state."""
        self.connectors[name] = {"name": name, **config}
        self.statuses[name] = {
            "name": name,
            "connector": {"state": "RUNNING", "worker_id": "127.0.0.1:8083"},
            "tasks": [
                {"id": task, "state": state, "worker_id": "127.0.0.1:8083"}
                | ({"trace": trace} if trace else {})
                for task in range(tasks)
            ],
            "type": self.type(name),
        }

    def type(self, name):
        return "sink" if "Sink" in self.connectors[name]["connector.class"] else "source"

    def info(self, name):
        tasks = self.statuses.get(name, {"tasks": []})["tasks"]
        return {
            "name": name,
            "config": self.connectors[name],
            "tasks": [{"connector": name, "task": task["id"]} for task in tasks],
            "type": self.type(name),
        }

    def answer(self, method, path, query, body):
        """The status and the form of an answer."""
        parts = [unquote(part) for part in path.split("/")[1:]]
        match method, parts:
            case "GET", ["health"]:
                return 200, {"status": "healthy"}
            case "GET", ["connector-plugins"]:
                return 200, PLUGINS
            case "PUT", ["connector-plugins", _, "config", "validate"]:
                return 200, {"configs": [self.value(*each) for each in self.problems.items()]}
            case "GET", ["connectors"] if query:
                known = [name for name in self.connectors if name in self.statuses]
                return 200, {n: {"info": self.info(n), "status": self.statuses[n]} for n in known}
            case "GET", ["connectors"]:
                return 200, list(self.connectors)
            case "POST", ["connectors"]:
                if body["name"] in self.connectors:
                    return error(409, f"Connector {body['name']} already exists")
                self.put(body["name"], body["config"], tasks=0)
                del self.statuses[body["name"]]
                return 201, self.info(body["name"])
            case _:
                pass
        if parts[0] != "connectors":
            return error(404, "HTTP 404 Not Found")
        return self.of_one(method, parts[1], parts[2:])

    def of_one(self, method, name, rest):
        if name not in self.connectors:
            return error(404, f"Connector {name} not found")
        match method, rest:
            case "GET", []:
                return 200, self.info(name)
            case "GET", ["status"]:
                if name not in self.statuses:
                    return error(404, f"No status found for connector {name}")
                return 200, self.statuses[name]
            case "GET", ["topics"]:
                return 200, {name: {"topics": self.active.get(name, [])}}
            case "DELETE", []:
                del self.connectors[name]
                self.statuses.pop(name, None)
                return 204, None
            case _:
                pass
        return error(404, "HTTP 404 Not Found")

    def value(self, name, errors):
        return {"definition": {"name": name}, "value": {"name": name, "errors": errors}}


def error(status, message):
    return status, {"error_code": status, "message": message}


def says(status, text, kind="text/html"):
    """An answer of something else."""

    def answer(handler):
        handler.plain(status, text.encode(), kind)

    return answer


def dies(handler):
    """The worker ends in the middle of a request."""
    handler.close_connection = True
    handler.connection.close()


def sleeps(seconds):
    """An answer that takes that long."""

    def answer(handler):
        time.sleep(seconds)
        handler.plain(200, b"[]", "application/json")

    return answer


def trickles(handler):
    """An answer that comes in small pieces, and never ends."""
    handler.send_response(200)
    handler.end_headers()
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.02)


def trickles_headers(handler):
    """An answer whose head comes byte by byte, and never ends."""
    handler.send_response(200)
    handler.flush_headers()
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b"x")
            time.sleep(0.02)


def handler_of(fake):
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def plain(self, status, data, kind):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def handle_any(self):
            url = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            fake.requests.append((self.command, self.path, body))
            fake.headers.append(dict(self.headers))
            odd = fake.odd.get((self.command, url.path))
            if odd:
                odd.pop(0)(self)
                return
            status, form = fake.answer(self.command, url.path, url.query, body)
            data = b"" if form is None else json.dumps(form).encode()
            with contextlib.suppress(BrokenPipeError):
                self.plain(status, data, "application/json")

        do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815 - the library's names

    return Handler


class Quiet(ThreadingHTTPServer):
    """A server that says nothing of clients that do not trust it."""

    daemon_threads = True

    def handle_error(self, *_):
        pass


@contextlib.contextmanager
def running(tls=None):
    """A fake that listens; with a context it speaks TLS."""
    fake = FakeConnect()
    server = Quiet(("127.0.0.1", 0), handler_of(fake))
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    scheme = "http" if tls is None else "https"
    fake.url = f"{scheme}://localhost:{server.server_address[1]}"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
