"""Consistency tokens, which clients hand back, and signatures by which servers know each other.

A token says what a client has written or read: up to where, in which topics.

A read with a token is answered only from replicas that hold all of that. The text is opaque to
clients; the form in it has a version of its own. Offsets mean something in one Kafka cluster only,
and a service knows its own queries only: a token names both, and is refused elsewhere.

Source: ksqlDB's consistency tokens (``consistencyToken`` of pull queries).

Servers of a service recognise each other by a signature.

They share a secret. A request carries its time, signed with the secret together with its path and
its server. So nobody who receives it can use it at another server, or later.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import orjson

from ksql.core import versioned_json
from ksql.core.error_table import FOREIGN_TOKEN
from ksql.core.errors import KsqlError, StartError

if TYPE_CHECKING:
    from ksql.core.config import Settings


TOKEN: Final = "request.ksql.query.pull.consistency.offset.vector"  # noqa: S105 - a property's name
"""The request property that holds a token, or nothing: the answer will have one."""
VERSION: Final = 2
_FIELDS: Final[versioned_json.Fields] = {
    1: frozenset({"positions"}),
    VERSION: frozenset({"cluster", "service", "positions"}),
}
_LARGEST: Final = 2**63 - 1
_LARGEST_PARTITION: Final = 2**31 - 1
_LONGEST: Final = 1 << 20  # tens of thousands of partitions; it is read between other requests

PartitionId = tuple[str, int]
"""Topic and partition."""


class BadToken(KsqlError):
    """A text that is no consistency token."""

    advice = (
        "Send back one that a server of this service has given, as it was; or an empty one to "
        "begin with."
    )

    def __init__(self, why: str) -> None:
        super().__init__("The consistency token cannot be read", detail=why, hint=self.advice)


class NewerToken(BadToken):
    """A token in a form that only later versions know."""

    advice = (
        "A server of a later version has given it: send it to one of that version. An empty one "
        "starts over, and names nothing of what was written and seen."
    )


@dataclass(frozen=True, slots=True)
class TokenScope:
    """Where tokens are given: a Kafka cluster and a service; nothing is known of an empty one."""

    cluster: str = ""
    service: str = ""

    def __str__(self) -> str:
        return f'the service "{self.service}" on the Kafka cluster "{self.cluster}"'


@dataclass(frozen=True, slots=True)
class Token:
    """The offsets after what a client has seen: topic, partition, offset; in order.

    ``scope``: the service that has given it; empty for one of the first version, which names none.
    """

    positions: tuple[tuple[str, int, int], ...] = ()
    scope: TokenScope = TokenScope()

    @classmethod
    def of(cls, text: str) -> Token:
        """Return the token of a text; an empty text names nothing.

        Raises: BadToken, NewerToken.
        """
        if not text:
            return cls()
        if len(text) > _LONGEST:
            raise BadToken(f"it is longer than {_LONGEST} characters")
        try:
            data = base64.b64decode(text.encode(), altchars=b"-_", validate=True)
            _, body = versioned_json.read(data, _FIELDS)
            scope = TokenScope(*(_name(body.get(field, "")) for field in ("cluster", "service")))
            offsets = {
                (_name(topic), _partition(partition)): _offset(offset)
                for topic, parts in body["positions"].items()
                for partition, offset in parts.items()
            }
        except versioned_json.NewerVersion as error:
            raise NewerToken(str(error)) from error
        except (ValueError, AttributeError, RecursionError, binascii.Error) as error:
            raise BadToken(str(error)) from error
        return cls(scope=scope).with_(offsets)

    def with_(self, seen: Mapping[PartitionId, int]) -> Token:
        """Return a token that names this as well."""
        offsets = self.places()
        for partition, offset in seen.items():
            offsets[partition] = max(offset, offsets.get(partition, 0))
        return replace(
            self,
            positions=tuple(sorted((*partition, offset) for partition, offset in offsets.items())),
        )

    def places(self) -> dict[PartitionId, int]:
        """Return the offsets by topic and partition."""
        return {(topic, partition): offset for topic, partition, offset in self.positions}

    def of_topic(self, topic: str) -> dict[PartitionId, int]:
        """Return the offsets of one topic."""
        return {
            partition: offset
            for partition, offset in self.places().items()
            if partition[0] == topic
        }

    def digest(self) -> bytes:
        """Return a short name of all that it names."""
        return hashlib.sha256(orjson.dumps(self.positions)).digest()

    def text(self) -> str:
        """Return it as a client gets it."""
        topics: dict[str, dict[str, int]] = {}
        for topic, partition, offset in self.positions:
            topics.setdefault(topic, {})[str(partition)] = offset
        form = {
            "version": VERSION,
            "cluster": self.scope.cluster,
            "service": self.scope.service,
            "positions": topics,
        }
        return base64.urlsafe_b64encode(orjson.dumps(form)).decode()


class TokenIssuer(Protocol):
    """A server, as far as tokens need it."""

    @property
    def scope(self) -> TokenScope:
        """The service and the cluster that its tokens name."""


def requested_token(properties: Mapping[str, str], issuer: TokenIssuer) -> Token | None:
    """Return the token of a request's properties; None if the request is not about tokens.

    Those that are made of it have the server's scope.

    Raises: BadToken, NewerToken, FOREIGN_TOKEN.
    """
    text = properties.get(TOKEN)
    if text is None:
        return None
    token, scope = Token.of(text), issuer.scope
    if token.scope not in (scope, TokenScope()):
        raise FOREIGN_TOKEN(scope=token.scope, here=scope)
    return replace(token, scope=scope)


def merged(tokens: Iterable[Mapping[PartitionId, int]]) -> dict[PartitionId, int]:
    """Return the highest offset of each place."""
    offsets: dict[PartitionId, int] = {}
    for token in tokens:
        for partition, offset in token.items():
            offsets[partition] = max(offset, offsets.get(partition, 0))
    return offsets


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} is no name")
    value.encode()  # JSON can name halves of characters, which cannot be sent back
    return value


def _partition(text: str) -> int:
    number = int(text)
    if not 0 <= number <= _LARGEST_PARTITION:
        raise ValueError(f"{text:.40} is no partition")
    return number


def _offset(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise ValueError(f"{value!r:.40} is no offset")
    return value


FILE: Final = "ksql.internal.secret.file"
HEADER: Final = "x-ksql-server"
LIFE_S: Final = 60
_SHORTEST: Final = 16
_VERSION: Final = "1"


class BadSecret(StartError):
    """A file that should hold the servers' secret, and does not."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{FILE}: the file {path} {why}",
            hint=f"Write one line of {_SHORTEST} characters or more that nobody guesses, the same "
            "for all servers of the service: openssl rand -hex 32",
        )


@dataclass(frozen=True)
class ServerSecret:
    """The secret of the servers of one service."""

    secret: bytes
    now_s: Callable[[], float] = time.time

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """Read the file that the settings name; None if they name none.

        Raises: BadSecret.
        """
        path = settings.text(FILE)
        if not path:
            return None
        try:
            text = Path(path).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadSecret(path, "cannot be read") from error
        if len(text) < _SHORTEST:
            raise BadSecret(path, f"holds fewer than {_SHORTEST} characters")
        return cls(text.encode())

    def token(self, method: str, path: str, server: str) -> str:
        """Return what a request to that server carries in ``HEADER``."""
        issued = str(int(self.now_s()))
        return f"{_VERSION} {issued} {self._signed(issued, method, path, server)}"

    def accepts(self, token: str, method: str, path: str, server: str) -> bool:
        """Return whether a token is of a server, for this very request at that server, and new."""
        version, _, rest = token.partition(" ")
        issued, _, signature = rest.partition(" ")
        if version != _VERSION or not (
            issued.isascii() and issued.isdecimal() and len(issued) < 16
        ):
            return False
        if abs(self.now_s() - int(issued)) > LIFE_S or not signature.isascii():
            return False
        return hmac.compare_digest(signature, self._signed(issued, method, path, server))

    def _signed(self, issued: str, method: str, path: str, server: str) -> str:
        parts = (_VERSION, issued, method, path.partition("?")[0], server.lower())
        return hmac.new(self.secret, "\n".join(parts).encode(), hashlib.sha256).hexdigest()
