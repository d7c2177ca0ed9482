"""Refuses open ports without a password, unless an operator says that nobody can reach them.

Spark's ports run the code of anybody who reaches them; the embedded registry and the embedded
broker know neither users nor TLS.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ksql.core.config import comma_list
from ksql.core.errors import StartError
from ksql.http.access import INTERNAL, is_loopback
from ksql.registry.registry import LISTENER as REGISTRY_LISTENER
from ksql.registry.registry import URL as REGISTRY
from ksql.spark.session.jvm import is_local

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ksql.core.config import Settings

MASTER: Final = "ksql.spark.master"
REQUIRED: Final = "ksql.spark.authenticate.required"
SECRET_FILE: Final = "ksql.spark.authenticate.secret.file"  # noqa: S105 - a property's name
REMOTE: Final = "ksql.embedded.allow.remote"
_AUTHENTICATE: Final = "spark.authenticate"
_SECRET: Final = "spark.authenticate.secret"  # noqa: S105 - a property's name


class SparkOpen(StartError):
    """A Spark cluster that runs the code of anybody who reaches it."""

    def __init__(self, master: str, lacks: str) -> None:
        super().__init__(
            f"{MASTER} is {master}, and {lacks}",
            detail="Beyond `local`, Spark's driver and executors listen on the network: without "
            f"{_AUTHENTICATE} they run the code of anybody who reaches them.",
            hint=f"Name a file with the secret that master and workers have as {_SECRET}: "
            f"{SECRET_FILE}=.. . Where nobody else reaches that network, set {REQUIRED}=false.",
        )


class BadSparkSecret(StartError):
    """A file that should hold Spark's secret, and does not."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{SECRET_FILE}: the file {path} {why}",
            hint="Write one line that nobody guesses: openssl rand -hex 32",
        )


class EmbeddedOpen(StartError):
    """A part without users or TLS in a server that other machines reach."""

    def __init__(self, what: str, listener: str) -> None:
        super().__init__(
            f"{what} knows neither users nor TLS, and {listener} is open to other machines",
            hint="Give the service a Kafka and a schema registry of their own (bootstrap.servers, "
            f"{REGISTRY}). Where only this machine's users and trusted ones reach it, set "
            f"{REMOTE}=true.",
        )


def check_exposure(settings: Settings) -> None:
    """Refuse a Spark cluster without authentication, and embedded parts that are open.

    Raises: SparkOpen, BadSparkSecret, EmbeddedOpen.
    """
    _check_spark(settings, authentication(settings))
    if settings.flag(REMOTE):
        return
    for part, name, listener in _beside(settings):
        if not is_loopback(urlsplit(listener).hostname or ""):
            raise EmbeddedOpen(part, f"{name} {listener}")


def authentication(settings: Settings) -> dict[str, str]:
    """Return what Spark's configuration gets from the file with its secret; nothing without one.

    Raises: BadSparkSecret.
    """
    path = settings.text(SECRET_FILE)
    if not path:
        return {}
    return {_AUTHENTICATE: "true", _SECRET: _read(path), "spark.network.crypto.enabled": "true"}


def _check_spark(settings: Settings, from_file: Mapping[str, str]) -> None:
    master = settings.text(MASTER)
    if is_local(master) or not settings.flag(REQUIRED):
        return
    conf = {**from_file, **settings.server}
    if conf.get(_AUTHENTICATE, "").lower() != "true":
        raise SparkOpen(master, f"{_AUTHENTICATE} is not true")
    if not conf.get(_SECRET):
        raise SparkOpen(master, f"there is no {_SECRET}")


def _read(path: str) -> str:
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSparkSecret(path, "cannot be read") from error
    if not text or len(text.splitlines()) > 1:
        raise BadSparkSecret(path, "does not hold one line")
    return text


def _beside(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield the embedded parts with the listeners that must be this machine's for them.

    A server with a broker of its own holds all records on this machine. A registry of its own is
    reached by its own listener alone.
    """
    if not settings.text(REGISTRY):
        yield "the embedded schema registry", REGISTRY_LISTENER, settings.text(REGISTRY_LISTENER)
    if not settings.text("bootstrap.servers"):
        for name in ("listeners", INTERNAL):
            for listener in comma_list(settings.text(name)):
                yield "the embedded Kafka broker", name, listener
