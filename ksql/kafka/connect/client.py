"""A client of Kafka Connect's REST interface; each call has one limit of time for all it does.

Source: Apache Kafka documentation, Kafka Connect, REST API.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import httpx

from ksql.core import KsqlError
from ksql.kafka.connect import errors as err
from ksql.kafka.connect import model

if TYPE_CHECKING:
    from ksql.kafka.connect.model import Config, ConnectorInfo, ConnectorStatus, Listed, Plugin
    from ksql.kafka.connect.settings import ConnectSettings

T = TypeVar("T")
_MOST_BYTES: Final = 32 << 20
_REST_S: Final = 0.1
_NOTHING: Final[Mapping[str, str]] = {}
_FORBIDDEN: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class _Conflict(KsqlError):
    """Kafka Connect answers 409: the name is taken, or the workers are busy with themselves."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to a request whose status is no error."""

    path: str
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _Request:
    """A request to one worker.

    It takes the connection within ``connect_s`` seconds. ``deadline`` is that of its answer, as
    ``time.monotonic`` counts.
    """

    url: str
    method: str
    path: str
    body: Mapping[str, Any] | None
    connect_s: float
    deadline: float


class ConnectClient:
    """Kafka Connect as statements use it; for any number of threads.

    Every method may raise ConnectUnreachable, ConnectTooSlow, ConnectBroke, NotConnect,
    ConnectForbids, ConnectBusy, ConnectRejects and ConnectFailed. An embedded worker that cannot be
    reached is ConnectStarting: it is started again. Of several workers the next one is taken when
    one takes no connection.
    """

    def __init__(self, settings: ConnectSettings) -> None:
        self.urls = settings.urls
        self.embedded = settings.embedded
        self._timeout_s = settings.timeout_s
        self._credentials = settings.credentials
        self._tls = settings.tls

    @property
    def url(self) -> str:
        """The address of the worker that is asked first: the one that took a connection last."""
        return self.urls[0]

    def names(self) -> tuple[str, ...]:
        """Return the names of all connectors, sorted."""
        return self._read(self._get("/connectors"), _names)

    def connectors(self) -> tuple[Listed, ...]:
        """Return all connectors by name, with configuration and status.

        Connect leaves out those that have no status yet: they are looked up one by one.
        """
        names = self.names()
        answer = self._get("/connectors?expand=info&expand=status")
        known = self._read(answer, _listed)
        missing = [name for name in names if name not in known]
        for name in missing:
            try:
                known[name] = model.Listed(self.info(name), None)
            except err.NoSuchConnector:  # dropped meanwhile
                continue
        return tuple(known[name] for name in sorted(known))

    def plugins(self) -> tuple[Plugin, ...]:
        """Return the classes of connectors that can be made."""
        return self._read(self._get("/connector-plugins"), _plugins)

    def plugin(self, class_name: str) -> Plugin:
        """Return the plugin that ``connector.class`` means.

        Raises: UnknownPlugin, which names the known ones.
        """
        known = self.plugins()
        for plugin in known:
            if class_name in plugin.names:
                return plugin
        raise err.UnknownPlugin(class_name, known, embedded=self.embedded)

    def defaults(self, plugin: Plugin) -> Config:
        """Return what a connector's configuration has here if a statement does not say otherwise.

        The embedded broker makes no topics by itself, so an embedded worker makes those of sources.
        """
        return model.CREATE_TOPICS if self.embedded and plugin.type == "source" else {}

    def problems(self, name: str, config: Config) -> tuple[str, ...]:
        """Return what the connector's class finds wrong with a configuration."""
        sent = {"name": name, **config}
        path = f"/connector-plugins/{_quoted(config[model.CLASS])}/config/validate"
        problems = self._read(self._request("PUT", path, sent, config), model.problems_of, config)
        return tuple(model.masked(problem, config) for problem in problems)

    def create(self, name: str, config: Config) -> ConnectorInfo:
        """Make a connector.

        Raises: ConnectorExists.
        """
        try:
            answer = self._request("POST", "/connectors", {"name": name, "config": config}, config)
        except _Conflict as conflict:
            raise err.ConnectorExists(name) from conflict
        return self._read(answer, model.info_of, config)

    def delete(self, name: str) -> None:
        """Delete a connector.

        Raises: NoSuchConnector; NotConnect for an answer with a content, as of a page to sign in.
        """
        answer = self._request("DELETE", _path(name), name=name)
        if answer.body.strip():
            raise err.NotConnect(self.url, answer.path, answer.status, answer.body)

    def info(self, name: str) -> ConnectorInfo:
        """Return a connector's configuration.

        Raises: NoSuchConnector.
        """
        return self._read(self._get(_path(name), name), model.info_of)

    def status(self, name: str) -> ConnectorStatus | None:
        """Return a connector's state; None as long as no worker has reported it."""
        try:
            answer = self._get(f"{_path(name)}/status", name)
        except err.NoSuchConnector:
            return None
        return self._read(answer, model.status_of)

    def topics(self, name: str) -> tuple[str, ...]:
        """Return the topics that a connector has used so far."""
        answer = self._get(f"{_path(name)}/topics", name)
        return self._read(answer, lambda form: model.topics_of(form, name))

    def is_ready(self) -> bool:
        """Return whether a worker takes requests; for the embedded one."""
        deadline = time.monotonic() + self._timeout_s
        try:
            return self._sent("GET", "/health", None, deadline)[0] == HTTPStatus.OK
        except KsqlError:
            return False

    # --- requests

    def _get(self, path: str, name: str = "") -> _Answer:
        return self._request("GET", path, name=name)

    def _request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        config: Config | None = None,
        *,
        name: str = "",
    ) -> _Answer:
        """Send it, again while the workers are busy with themselves; ``name`` may be unknown.

        An error has none of the secrets of ``config``, which is sent.
        """
        secret = config or {}
        deadline = time.monotonic() + self._timeout_s
        while True:
            status, content = self._sent(method, path, body, deadline)
            if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:  # nothing is redirected
                return _Answer(path, status, content)
            error = self._error(path, status, content, name, secret)
            if not isinstance(error, err.ConnectBusy) or time.monotonic() + _REST_S > deadline:
                raise error
            time.sleep(_REST_S)

    def _sent(
        self, method: str, path: str, body: Mapping[str, Any] | None, deadline: float
    ) -> tuple[int, bytes]:
        """Send it to the first worker that takes a connection; later requests begin with that one.

        What a worker has taken is sent to no other: it may have been carried out.
        """
        urls = self.urls
        for place, url in enumerate(urls):
            # one that takes no connection leaves time for those after it
            connect_s = max(0.0, deadline - time.monotonic()) / (len(urls) - place)
            request = _Request(url, method, path, body, connect_s, deadline)
            try:
                sent = asyncio.run(self._exchanged(request))
            except err.ConnectUnreachable:
                if place == len(urls) - 1:
                    raise
                continue
            if place:
                self.urls = (*urls[place:], *urls[:place])
            return sent
        raise AssertionError("there is at least one address")

    async def _exchanged(self, request: _Request) -> tuple[int, bytes]:
        """Send it and take the whole answer, however slowly it comes, until the deadline."""
        url, changing = request.url, request.method in ("POST", "DELETE")
        try:
            async with asyncio.timeout(request.deadline - time.monotonic()):
                return await self._answer(request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            if self.embedded:  # it has just ended, and is started again
                raise err.ConnectStarting(_reason(error)) from error
            raise err.ConnectUnreachable(url, _reason(error)) from error
        except TimeoutError as error:
            raise err.ConnectTooSlow(url, self._timeout_s, changing=changing) from error
        except httpx.HTTPError as error:
            raise err.ConnectBroke(url, _reason(error), changing=changing) from error
        except httpx.InvalidURL as error:
            raise err.ConnectUnreachable(url, str(error)) from error

    async def _answer(self, request: _Request) -> tuple[int, bytes]:
        auth = None if self._credentials is None else self._credentials()
        more: dict[str, Any] = {} if auth is None else {"auth": auth}
        content = bytearray()
        http = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=request.connect_s),
            verify=self._tls or False,  # without it the address is http
            trust_env=False,
            headers={"accept": "application/json"},
        )
        whole = request.url + request.path
        async with (
            http,
            http.stream(request.method, whole, json=request.body, **more) as answer,
        ):
            async for part in answer.aiter_bytes():
                content += part
                if len(content) > _MOST_BYTES:
                    said = bytes(content)
                    raise err.NotConnect(request.url, request.path, answer.status_code, said)
            return answer.status_code, bytes(content)

    def _error(
        self, path: str, status: int, content: bytes, name: str, secret: Config
    ) -> KsqlError:
        """Return the error that an answer means."""
        said = model.masked(_message(content), secret)
        if status in _FORBIDDEN:
            return err.ConnectForbids(self.url, status, said)
        if status == HTTPStatus.NOT_FOUND and said and name:
            return err.NoSuchConnector(name)
        if not said or status == HTTPStatus.NOT_FOUND:  # the schema registry's address, say
            return self._foreign(path, status, content, secret)
        if status == HTTPStatus.CONFLICT:
            return _Conflict(said) if "already exists" in said else err.ConnectBusy(said)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return err.ConnectFailed(said)
        return err.ConnectRejects(said)

    def _foreign(self, path: str, status: int, content: bytes, secret: Config) -> err.NotConnect:
        said = model.masked(content.decode(errors="replace"), secret)
        return err.NotConnect(self.url, path, status, said.encode())

    def _read(self, answer: _Answer, read: Callable[[Any], T], secret: Config = _NOTHING) -> T:
        """Read an answer's form; an error has none of the secrets of a configuration.

        Raises: NotConnect.
        """
        try:
            return read(json.loads(answer.body))
        except (ValueError, model.NotThatForm) as error:
            raise self._foreign(answer.path, answer.status, answer.body, secret) from error


def _path(name: str) -> str:
    """Return the path of a connector.

    Raises: NoSuchConnector for what a path means otherwise, as ``..``.
    """
    if name in model.UNREACHABLE:
        raise err.NoSuchConnector(name)
    return f"/connectors/{_quoted(name)}"


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _message(content: bytes) -> str:
    """Return the message of an error of Kafka Connect; empty for any other answer."""
    try:
        form = json.loads(content)
        return str(form["message"]) if "error_code" in form else ""
    except (ValueError, TypeError, KeyError):
        return ""


def _names(form: Any) -> tuple[str, ...]:
    if not isinstance(form, list) or not all(isinstance(name, str) for name in form):
        raise model.NotThatForm
    return tuple(sorted(form))


def _plugins(form: Any) -> tuple[Plugin, ...]:
    if not isinstance(form, list):
        raise model.NotThatForm
    plugins = map(model.plugin_of, form)
    return tuple(sorted(plugins, key=lambda plugin: (plugin.class_name, plugin.version)))


def _listed(form: Any) -> dict[str, Listed]:
    if not isinstance(form, dict):
        raise model.NotThatForm
    try:
        return {
            str(name): model.Listed(model.info_of(each["info"]), model.status_of(each["status"]))
            for name, each in form.items()
        }
    except (KeyError, TypeError) as error:
        raise model.NotThatForm from error
