"""The server as the terminal sees it: requests out, entities and streamed rows in."""

from __future__ import annotations

import codecs
import contextlib
import json
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx

V1_JSON = "application/vnd.ksql.v1+json"
JsonObject = dict[str, Any]
_TOKEN = "request.ksql.query.pull.consistency.offset.vector"  # noqa: S105 - a property's name
_TIMEOUT = httpx.Timeout(10.0, read=None)  # a statement takes as long as it takes; Ctrl-C is there
_BETWEEN = re.compile(r"[\s,\[\]]*")
_ERROR_LINE = '{"@type":'


class ServerFailure(Exception):
    """The server's own words about what went wrong."""

    def __init__(
        self, code: int, message: str, statement: str = "", entities: list[JsonObject] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.statement = statement
        self.entities = entities or []

    @classmethod
    def of(cls, body: JsonObject) -> ServerFailure:
        """Return the failure that an error body describes."""
        return cls(
            int(body.get("error_code", 0)),
            str(body.get("message", "")),
            str(body.get("statementText", "")),
            body.get("entities"),
        )


class Unreachable(Exception):
    """No server answers at the address, or it stopped doing so."""


@dataclass(frozen=True, slots=True)
class RowsHeader:
    """The shape of a query's rows."""

    query_id: str | None
    columns: tuple[tuple[str, str], ...]  # name, type
    notes: tuple[str, ...] = ()  # notes on rows that the answer lacks


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a query; ``raw`` is the server's own JSON."""

    values: list[Any]
    tombstone: bool
    raw: str


@dataclass(frozen=True, slots=True)
class FinalMessage:
    """Why the query ended, or a note that was not known when its header was sent."""

    message: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line of PRINT."""

    text: str


@dataclass(frozen=True, slots=True)
class ShownToken:
    """The token that names what a query has shown."""

    token: str


Event = RowsHeader | Row | FinalMessage | Line | ShownToken


class WrittenNumber(str):
    """A number that is not whole, as the server wrote it: no digit is lost on its way here."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_float=WrittenNumber)


@cache
def _trust() -> ssl.SSLContext:
    """Read the authorities that are trusted, once for all clients."""
    return httpx.create_ssl_context()


class Client:
    """One server at one address; one user.

    ``tls`` has the trusted authorities and the certificate to show; without it, the usual ones and
    none. ``headers`` go along with every request.
    """

    def __init__(
        self,
        url: str,
        auth: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=self.url,
            auth=auth,
            timeout=_TIMEOUT,
            headers={"accept": V1_JSON, **(headers or {})},
            verify=tls or _trust(),
        )
        self._auth = auth
        self._tls = tls
        self._headers = headers

    def at(self, url: str) -> Client:
        """Return the same user at another server."""
        return Client(url, self._auth, self._tls, self._headers)

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def info(self, timeout_s: float = 5.0) -> JsonObject:
        """Return version and ids of the server."""
        body = self._ask("GET", "/info", timeout=timeout_s)
        info: JsonObject = body["KsqlServerInfo"]
        return info

    def execute(
        self,
        text: str,
        properties: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        sequence: int | None = None,
        token: str | None = None,
    ) -> list[JsonObject]:
        """Run statements that are not queries; their entities.

        With a ``token``, which may be empty, there is one entity more if rows were written.
        Raises: ServerFailure, Unreachable.
        """
        body = _statements(text, properties, variables, sequence, token)
        entities: list[JsonObject] = self._ask("POST", "/ksql", json=body)
        return entities

    def dry_run(
        self,
        text: str,
        properties: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        sequence: int | None = None,
    ) -> list[JsonObject]:
        """Check statements, each with the effects of those before; an entity for each.

        Raises: ServerFailure, with the entities of those before the first that is refused;
            Unreachable.
        """
        body = _statements(text, properties, variables, sequence, None)
        entities: list[JsonObject] = self._ask("POST", "/ksql/dry-run", json=body)
        return entities

    def upgrades(self) -> list[JsonObject]:
        """Return the upgrades of the service's queries, the newest first.

        Raises: ServerFailure, Unreachable.
        """
        upgrades: list[JsonObject] = self._ask("GET", "/upgrades", timeout=5.0)["upgrades"]
        return upgrades

    def close_query(self, query_id: str) -> bool:
        """End a push query; False if the server knows no such query (any more)."""
        try:
            self._ask("POST", "/close-query", json={"queryId": query_id}, timeout=5.0)
        except (ServerFailure, Unreachable):
            return False
        return True

    @contextlib.contextmanager
    def query(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        token: str | None = None,
    ) -> Iterator[Iterator[list[Event]]]:
        """Run a query or PRINT; its events as they arrive. Leaving the block ends it.

        With a ``token`` its rows are no older than what that names; one may be among the events.
        Raises: ServerFailure, Unreachable; also while the events are read.
        """
        body = {
            "sql": text,
            "properties": properties,
            "sessionVariables": variables,
            "requestProperties": _request(token),
        }
        with (
            _reaching(self.url),
            self._http.stream("POST", "/query-stream", json=body) as response,
        ):
            if response.is_error:
                response.read()
                raise _failure(response)
            plain = response.headers.get("content-type", "").startswith("text/plain")
            yield _lines(response) if plain else _events(response)

    def _ask(self, method: str, path: str, **kwargs: Any) -> Any:
        with _reaching(self.url):
            response = self._http.request(method, path, **kwargs)
        if response.is_error:
            raise _failure(response)
        return response.json() if response.content else None


def _statements(
    text: str,
    properties: Mapping[str, str] | None,
    variables: Mapping[str, str] | None,
    sequence: int | None,
    token: str | None,
) -> JsonObject:
    return {
        "ksql": text,
        "streamsProperties": properties or {},
        "sessionVariables": variables or {},
        "commandSequenceNumber": sequence,
        "requestProperties": _request(token),
    }


def _request(token: str | None) -> dict[str, str]:
    return {} if token is None else {_TOKEN: token}


@contextlib.contextmanager
def _reaching(url: str) -> Iterator[None]:
    try:
        yield
    except httpx.TransportError as error:
        raise Unreachable(
            f"no answer from the server at {url}: {error}\n"
            "`ksql server` starts one, `ksql --server URL` asks another."
        ) from error


def _failure(response: httpx.Response) -> ServerFailure:
    try:
        body = response.json()
    except ValueError:
        body = None
    if isinstance(body, dict) and "message" in body:
        return ServerFailure.of(body)
    said = response.text.strip()[:200]
    return ServerFailure(
        response.status_code * 100, f"the server answered {response.status_code}: {said}"
    )


def _lines(response: httpx.Response) -> Iterator[list[Event]]:
    for line in response.iter_lines():
        if line.startswith(_ERROR_LINE):
            raise ServerFailure.of(json.loads(line))
        yield [Line(line)]


def _events(response: httpx.Response) -> Iterator[list[Event]]:
    """Return the elements of a JSON array, each as soon as its last byte is here."""
    decode = codecs.getincrementaldecoder("utf-8")().decode
    pending = ""
    for chunk in response.iter_bytes():
        pending += decode(chunk)
        position = 0
        events: list[Event] = []
        while (start := _skip(pending, position)) < len(pending):
            try:
                document, position = _DECODER.raw_decode(pending, start)
            except json.JSONDecodeError:
                break  # the rest of this element is still on its way
            if (failure := _failure_in(document)) is not None:
                yield events
                raise failure
            if (event := _event(document, pending[start:position])) is not None:
                events.append(event)
        pending = pending[position:]
        yield events
    if pending[_skip(pending, 0) :]:
        raise Unreachable("the server's answer broke off")


def _skip(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match else position


def _event(document: JsonObject, raw: str) -> Event | None:
    """Return what an element is; None for one that only later versions of the terminal know.

    Raises: Unreachable for a row or a header that cannot be read.
    """
    match document:
        case {"row": {"columns": values, **more}}:
            return Row(values, bool(more.get("tombstone")), raw)
        case {"header": {"queryId": query_id, "schema": schema, **more}}:
            notes = more.get("notes")
            shown = tuple(map(str, notes)) if isinstance(notes, list) else ()
            return RowsHeader(query_id, parse_schema(schema), shown)
        case {"finalMessage": message}:
            return FinalMessage(message)
        case {"consistencyToken": {"consistencyToken": str(token)}}:
            return ShownToken(token)
        case {"row": _} | {"header": _}:
            raise Unreachable(f"the server's answer has an unknown part: {raw[:200]}")
        case _:
            return None


def _failure_in(document: JsonObject) -> ServerFailure | None:
    body = document.get("errorMessage")
    return ServerFailure.of(body) if isinstance(body, dict) else None


_COLUMN = re.compile(r"`((?:[^`]|``)*)`\s+(.*)", re.DOTALL)


def parse_schema(text: str) -> tuple[tuple[str, str], ...]:
    """Return the columns of a schema text: ``(("A", "INTEGER"), ("B", "ARRAY<STRING>"))``."""
    columns = []
    for part in _top_level(text):
        match = _COLUMN.match(part)
        if match:
            columns.append((match[1].replace("``", "`"), match[2].removesuffix(" KEY")))
    return tuple(columns)


def _top_level(text: str) -> Iterator[str]:
    """Return the parts between those commas that are in no brackets and no quotes."""
    depth = start = 0
    quoted = False
    for position, letter in enumerate(text):
        if letter == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    yield text[start:].strip()
