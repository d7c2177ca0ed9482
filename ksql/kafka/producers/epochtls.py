"""Kafka's security for kafka-python: the same as for librdkafka, or an error.

It writes the records of the epoch only, so that a difference would be found long after the start.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PROTOCOL: Final = "security.protocol"
_MECHANISM: Final = "sasl.mechanism"
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_CA: Final = ("ssl.ca.location", "ssl.ca.pem")
_CHAIN: Final = ("ssl.certificate.location", "ssl.certificate.pem")
_KEY: Final = ("ssl.key.location", "ssl.key.pem")
_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - a property's name
_NAMES: Final = "ssl.endpoint.identification.algorithm"
_CIPHERS: Final = "ssl.cipher.suites"
_STORE: Final = "ssl.keystore.location"
TAKEN: Final = (*_CA, *_CHAIN, *_KEY, _PASSWORD, _NAMES, _CIPHERS)
"""The properties of librdkafka that make the context."""


def hindrance(config: Mapping[str, object]) -> str:
    """Return what of a configuration kafka-python cannot do; empty if it can do all."""
    protocol = str(config.get(PROTOCOL, "")).upper()
    mechanism = str(config.get(_MECHANISM, "PLAIN"))
    if protocol.startswith("SASL") and mechanism not in _MECHANISMS:
        return f"{_MECHANISM}={mechanism} is not one of {', '.join(_MECHANISMS)}"
    if protocol.endswith("SSL") and _STORE in config:
        return f"{_STORE} is a PKCS12 file; PEM files can be read"
    return ""


def context(config: Mapping[str, object]) -> ssl.SSLContext | None:
    """Return TLS as the properties ask for it; None for a protocol without.

    Raises: OSError, ssl.SSLError.
    """
    if not str(config.get(PROTOCOL, "")).upper().endswith("SSL"):
        return None
    tls_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls_context.minimum_version = ssl.TLSVersion.TLSv1_2
    tls_context.check_hostname = str(config.get(_NAMES, "https")) != "none"
    _trust(tls_context, config)
    _show(tls_context, config)
    if _CIPHERS in config:
        tls_context.set_ciphers(str(config[_CIPHERS]))
    return tls_context


def _trust(tls_context: ssl.SSLContext, config: Mapping[str, object]) -> None:
    location, text = (config.get(name) for name in _CA)
    if text is not None:
        tls_context.load_verify_locations(cadata=str(text))
    elif location is not None and Path(str(location)).is_dir():
        tls_context.load_verify_locations(capath=str(location))
    elif location is not None:
        tls_context.load_verify_locations(cafile=str(location))
    else:
        tls_context.load_default_certs()


def _show(tls_context: ssl.SSLContext, config: Mapping[str, object]) -> None:
    """Load this client's own certificate; texts through files, as ``ssl`` reads no others."""
    if not any(name in config for name in _CHAIN):
        return
    password = str(config.get(_PASSWORD, ""))  # none at all: OpenSSL would ask the terminal
    with tempfile.TemporaryDirectory(prefix="ksql-") as folder:
        chain = _file(config, _CHAIN, Path(folder) / "chain.pem")
        key = _file(config, _KEY, Path(folder) / "key.pem")
        tls_context.load_cert_chain(chain or "", key, password)


def _file(config: Mapping[str, object], names: tuple[str, str], file: Path) -> str | None:
    location, text = (config.get(name) for name in names)
    if text is None:
        return None if location is None else str(location)
    file.touch(mode=0o600)
    file.write_text(str(text), encoding="utf-8")
    return str(file)
