"""The settings of Kafka Connect and its embedded worker, from the server's configuration."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ksql.core import WatchedFiles, comma_list, without_secrets
from ksql.http import client_context
from ksql.kafka.connect.errors import EMBEDDED, TIMEOUT, URL, BadConnectSetting, BadCredentials

if TYPE_CHECKING:
    from ksql.core import Settings

_SOURCE: Final = "ksql.connect.basic.auth.credentials.source"
_FILE: Final = "ksql.connect.basic.auth.credentials.file"
_RELOAD: Final = "ksql.connect.basic.auth.credentials.reload"
_WORKER_CONFIG: Final = "ksql.connect.worker.config"
_PLUGINS: Final = "ksql.connect.plugin.path"
_IDENTIFICATION: Final = "ksql.connect.ssl.endpoint.identification.algorithm"
_OWN_TLS: Final = {
    "ksql.connect.ssl.truststore.location": "ssl.truststore.location",
    "ksql.connect.ssl.keystore.location": "ssl.keystore.location",
    "ksql.connect.ssl.key.password": "ssl.key.password",
}
_LINE: Final = re.compile(r"^\s*(username|password)\s*[=:]\s*(.*?)\s*$", re.MULTILINE)


def _user_in(file: Path) -> tuple[str, str]:
    """Return the user and the password that a file has.

    Raises: BadCredentials.
    """
    try:
        pairs = dict(_LINE.findall(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise BadCredentials(file, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadCredentials(file, "is no UTF-8 text") from error
    if len(pairs) != 2:
        raise BadCredentials(file, "does not hold a user and a password")
    return pairs["username"], pairs["password"]


@dataclass(frozen=True)
class ConnectSettings:
    """Where Kafka Connect is; ``embedded`` says whether this server runs it.

    ``urls`` are the addresses of workers of one group, at least one. ``credentials`` gives
    the user and the password for the next request.
    """

    urls: tuple[str, ...]
    timeout_s: float = 5.0
    credentials: Callable[[], tuple[str, str]] | None = None
    tls: ssl.SSLContext | None = None
    embedded: bool = False


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """The settings of the embedded worker; ``more`` is the text of a user's own file for it."""

    plugins: tuple[str, ...] = ()
    files: bool = False
    heap_mb: int = 512
    more: str = ""
    kafka: Mapping[str, str] = field(default_factory=dict)
    service_id: str = "default_"
    replicas: int = 1


def is_embedded(settings: Settings) -> bool:
    """Return whether this server must run a worker of its own."""
    return settings.flag(EMBEDDED) or bool(settings.text(_WORKER_CONFIG))


def connect_settings(settings: Settings) -> ConnectSettings | None:
    """Return where another Kafka Connect is; None if no address is stated.

    The setting has the addresses of its workers, divided by commas.

    Raises: BadConnectSetting, BadCredentials, NoPemStore, BadKeyStore, BadTrustStore.
    """
    urls = tuple(url.rstrip("/") for url in comma_list(settings.text(URL)))
    if not urls:
        return None
    for url in urls:
        if not _is_address(url):
            raise BadConnectSetting(
                URL, f"is no address: {without_secrets(url)}", "Write it as http://HOST:8083."
            )
    tls = _tls(settings) if any(url.startswith("https") for url in urls) else None
    return ConnectSettings(urls, answer_within_s(settings), _credentials(settings), tls)


def _is_address(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def answer_within_s(settings: Settings) -> float:
    """Return how long Kafka Connect may take to answer."""
    return settings.number(TIMEOUT) / 1000


def check_connect(settings: Settings) -> None:
    """Refuse settings of Kafka Connect that cannot be used.

    Raises: BadConnectSetting, BadCredentials, NoPemStore, BadKeyStore, BadTrustStore.
    """
    connect_settings(settings)
    if not is_embedded(settings):
        return
    if settings.text(URL):
        raise BadConnectSetting(
            EMBEDDED if settings.flag(EMBEDDED) else _WORKER_CONFIG,
            f"is set, and {URL} names another Kafka Connect",
            "Keep one of the two.",
        )
    worker_settings(settings)


def worker_settings(settings: Settings) -> WorkerSettings:
    """Return the settings of the embedded worker, but for its Kafka.

    Raises: BadConnectSetting.
    """
    plugins = tuple(comma_list(settings.text(_PLUGINS)))
    paths = tuple(str(Path(each).expanduser().absolute()) for each in plugins)
    for path in paths:
        if not Path(path).exists():
            raise BadConnectSetting(_PLUGINS, f"names {path}, which does not exist", "Make it.")
    return WorkerSettings(
        plugins=paths,
        files=settings.flag("ksql.connect.embedded.files"),
        heap_mb=settings.number("ksql.connect.embedded.heap.mb"),
        more=_worker_file(settings.text(_WORKER_CONFIG)),
        service_id=settings.text("ksql.service.id"),
        replicas=settings.number("ksql.internal.topic.replicas"),
    )


def _worker_file(path: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadConnectSetting(
            _WORKER_CONFIG,
            f"names {path}, which cannot be read: {error}",
            "Name a file of properties of Kafka Connect's worker.",
        ) from error


def _credentials(settings: Settings) -> Callable[[], tuple[str, str]] | None:
    if settings.text(_SOURCE).upper() != "FILE":
        return None
    path = settings.text(_FILE)
    if not path:
        raise BadConnectSetting(_SOURCE, "is FILE, and no file is named", f"Name one: {_FILE}=FILE")
    file = Path(path).expanduser()
    if settings.flag(_RELOAD):

        def read(see: Callable[[Path], None]) -> tuple[str, str]:
            see(file)
            return _user_in(file)

        return WatchedFiles("connect_user", read, look_s=0).current
    user = _user_in(file)
    return lambda: user


def _tls(settings: Settings) -> ssl.SSLContext:
    """Return the client's side of TLS: ``ksql.connect.ssl.*``, else the server's own ``ssl.*``."""
    shared = {name: value for name, value in settings.server.items() if name.startswith("ssl.")}
    stated = {ours: settings.text(name) for name, ours in _OWN_TLS.items()}
    own = {name: value for name, value in stated.items() if value}
    for kind in ("truststore", "keystore"):
        if f"ssl.{kind}.location" in own:
            own.setdefault(f"ssl.{kind}.type", "PEM")
    context = client_context({**shared, **own})
    if settings.text(_IDENTIFICATION).lower() != "https":
        context.check_hostname = False
    return context
