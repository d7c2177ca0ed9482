"""TLS from ksqlDB's own properties, and the subject of a client's certificate: ASGI's ``tls``.

Stores are PEM files, the type that Kafka calls PEM. TLS has verified a certificate before its
subject is taken; one that is not verified is not shown.

Source: Apache Kafka, KIP-651: a PEM key store holds the private key and the certificate chain;
ASGI TLS extension, ``client_cert_name``; RFC 4514, text of a subject.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from ksql.core import StartError

if TYPE_CHECKING:
    import asyncio

    from starlette.types import ASGIApp, Receive, Scope, Send

KEYSTORE: Final = "ssl.keystore.location"
TYPE: Final = "ssl.keystore.type"
KEY_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - a property's name
PEM: Final = "PEM"
CLIENTS: Final = "ssl.client.authentication"
TRUSTED: Final = "ssl.truststore.location"
TRUSTED_TYPE: Final = "ssl.truststore.type"
CLIENTS_TRUSTED: Final = "ksql.ssl.client.truststore.location"
"""Whose clients are let in; the others say which brokers and servers are trusted, too."""
_CLIENTS: Final = {
    "NONE": ssl.CERT_NONE,
    "REQUESTED": ssl.CERT_OPTIONAL,
    "REQUIRED": ssl.CERT_REQUIRED,
}


class NoCertificate(StartError):
    """A listener asks for TLS, and nothing says with which certificate."""

    def __init__(self) -> None:
        super().__init__(
            "a listener asks for TLS, but the server has no certificate",
            hint=f"Name a PEM file with the private key and its certificates: {KEYSTORE}=..",
        )


class NoPemStore(StartError):
    """A key store or trust store of Java's own format."""

    def __init__(self, type_: str, *, trusted: bool = False) -> None:
        if trusted:
            convert = "openssl pkcs12 -in trusted.p12 -nokeys -out trusted.pem"
            names, file = (TRUSTED_TYPE, TRUSTED), "trusted.pem"
        else:
            convert = "openssl pkcs12 -in server.p12 -nodes -out server.pem"
            names, file = (TYPE, KEYSTORE), "server.pem"
        super().__init__(
            f"{'trust' if trusted else 'key'} stores of the type {type_} cannot be read",
            hint=f"Convert it: {convert}, then {names[0]}={PEM} and {names[1]}={file}",
        )


class BadKeyStore(StartError):
    """A file that is no PEM file with a key and its certificates, or that cannot be opened."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"the key store {path} cannot be used: {why}",
            hint="It must hold a private key and its certificates as PEM, the server's first; "
            f"the key's password, if it has one, is {KEY_PASSWORD}.",
        )


class NoTrustStore(StartError):
    """Clients' certificates are asked for, and nothing says which are good."""

    def __init__(self, policy: str) -> None:
        super().__init__(
            f"{CLIENTS}={policy}, but the server does not know whom to trust",
            hint=f"Name a PEM file with the certificates that sign clients': "
            f"{CLIENTS_TRUSTED}=.., or {TRUSTED}=.. if they sign brokers' as well",
        )


class BadTrustStore(StartError):
    """A file without certificates, or that cannot be opened."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"the trust store {path} cannot be used: {why}",
            hint="It must hold the certificates that clients' are signed with, as PEM.",
        )


class Renewable(ssl.SSLContext):
    """A side of TLS whose files can be read again; connections that are open stay as they are.

    It only hands connections to the context that was read last.
    """

    def __new__(cls, make: Callable[[], ssl.SSLContext]) -> Self:
        """Make one of the protocol that its contexts are of."""
        return super().__new__(cls, make().protocol)

    def __init__(self, make: Callable[[], ssl.SSLContext]) -> None:
        """Read the files; ``make`` raises StartErrors."""
        self._make = make
        self._current = make()
        self.check_hostname = self._current.check_hostname
        self.verify_mode = self._current.verify_mode

    def renew(self) -> None:
        """Read the files again, for the connections to come.

        Raises: what ``make`` does; the files that were read before count on.
        """
        self._current = self._make()

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        """Begin TLS over two buffers."""
        return self._current.wrap_bio(*args, **kwargs)

    def wrap_socket(self, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        """Begin TLS over a socket."""
        return self._current.wrap_socket(*args, **kwargs)


def server_context(configuration: Mapping[str, str]) -> ssl.SSLContext:
    """Return the server's side of TLS, with HTTP/2 and HTTP/1.1 to choose from.

    Clients' certificates are asked for as ``ssl.client.authentication`` says.
    Raises: NoCertificate, NoPemStore, BadKeyStore, NoTrustStore, BadTrustStore.
    """
    path, kind = configuration.get(KEYSTORE, ""), configuration.get(TYPE, "JKS").upper()
    if not path:
        raise NoCertificate
    if kind != PEM:
        raise NoPemStore(kind)
    password = configuration.get(KEY_PASSWORD, "")  # none at all: OpenSSL would ask the terminal
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        context.load_cert_chain(path, password=password)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror or str(error)
        raise BadKeyStore(path, why) from error
    _ask_clients(context, configuration)
    return context


def _ask_clients(context: ssl.SSLContext, configuration: Mapping[str, str]) -> None:
    policy = configuration.get(CLIENTS, "NONE").upper()
    mode = _CLIENTS[policy]  # the table of properties has checked it
    if mode == ssl.CERT_NONE:
        return
    path, kind = configuration.get(CLIENTS_TRUSTED, ""), PEM
    if not path:
        path, kind = configuration.get(TRUSTED, ""), configuration.get(TRUSTED_TYPE, "JKS").upper()
    if not path:
        raise NoTrustStore(policy)
    if kind != PEM:
        raise NoPemStore(kind, trusted=True)
    try:
        context.load_verify_locations(path)
    except (OSError, ssl.SSLError) as error:
        raise BadTrustStore(path, error.strerror or str(error)) from error
    context.verify_mode = mode


def client_context(configuration: Mapping[str, str]) -> ssl.SSLContext:
    """Return the side of a server that asks other servers: it trusts whom its trust store names.

    Without one it trusts what the system does; its own certificate says who it is.
    Raises: NoPemStore, BadKeyStore, BadTrustStore.
    """
    context = ssl.create_default_context()
    trusted, kind = configuration.get(TRUSTED, ""), configuration.get(TRUSTED_TYPE, "JKS").upper()
    if trusted:
        if kind != PEM:
            raise NoPemStore(kind, trusted=True)
        try:
            context.load_verify_locations(trusted)
        except (OSError, ssl.SSLError) as error:
            raise BadTrustStore(trusted, error.strerror or str(error)) from error
    path = configuration.get(KEYSTORE, "")
    if path:
        try:
            context.load_cert_chain(path, password=configuration.get(KEY_PASSWORD, ""))
        except (OSError, ssl.SSLError) as error:
            raise BadKeyStore(path, error.strerror or str(error)) from error
    return context


_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_SPECIAL: Final = re.compile(r'[,+"\\<>;]')


def subject_text(certificate: dict[str, Any]) -> str:
    """Return the subject of a certificate as ``ssl`` shows it: ``CN=ada,O=Example``."""
    return ",".join(
        f"{_SHORT.get(name, name)}={_SPECIAL.sub(_escaped, value)}"
        for attributes in reversed(certificate.get("subject", ()))
        for name, value in attributes
    )


def _escaped(match: re.Match[str]) -> str:
    return "\\" + match[0]


def client_certificate(transport: asyncio.BaseTransport) -> dict[str, Any]:
    """Return what a scope says of the client's certificate; nothing without a verified one."""
    side = transport.get_extra_info("ssl_object")
    certificate = None if side is None else side.getpeercert()
    if not certificate:
        return {}
    return {"extensions": {"tls": {"client_cert_name": subject_text(certificate)}}}


def certified(app: ASGIApp, transport: asyncio.BaseTransport) -> ASGIApp:
    """Return the application for one connection that knows the client's certificate, if any."""
    shown = client_certificate(transport)
    if not shown:
        return app

    async def knowing(scope: Scope, receive: Receive, send: Send) -> None:
        extensions = {**scope.get("extensions", {}), **shown["extensions"]}
        await app({**scope, "extensions": extensions}, receive, send)

    return knowing
