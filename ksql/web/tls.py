"""TLS from ksqlDB's own properties; stores are PEM files, the type that Kafka calls PEM.

Source: Apache Kafka, KIP-651: a PEM key store holds the private key and the certificate chain.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from ksql.base.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYSTORE: Final = "ssl.keystore.location"
TYPE: Final = "ssl.keystore.type"
KEY_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - a property's name
PEM: Final = "PEM"


class NoCertificate(StartError):
    """A listener asks for TLS, and nothing says with which certificate."""

    def __init__(self) -> None:
        super().__init__(
            "a listener asks for TLS, but the server has no certificate",
            hint=f"Name a PEM file with the private key and its certificates: {KEYSTORE}=..",
        )


class NoPemStore(StartError):
    """A key store of Java's own format."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"key stores of the type {found} cannot be read",
            hint="Convert it: openssl pkcs12 -in server.p12 -nodes -out server.pem, "
            f"then {TYPE}={PEM} and {KEYSTORE}=server.pem",
        )


class BadKeyStore(StartError):
    """A file that is no PEM file with a key and its certificates, or that cannot be opened."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"the key store {path} cannot be used: {why}",
            hint="It must hold a private key and its certificates as PEM, the server's first; "
            f"the key's password, if it has one, is {KEY_PASSWORD}.",
        )


def server_context(configuration: Mapping[str, str]) -> ssl.SSLContext:
    """The server's side of TLS, with HTTP/2 and HTTP/1.1 to choose from.

    Raises: NoCertificate, NoPemStore, BadKeyStore.
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
    return context
