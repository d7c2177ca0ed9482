"""A broker that also listens with TLS: one port asks for SASL, one for a certificate."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trustme
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives import serialization

from tests.brokers import adapted_broker
from tests.kafka.cluster import free_port
from tests.waits import PATIENCE_S

USER: Final = "ksql"
PASSWORD: Final = 'the "broker\'s" pass=word;'
_MODULE: Final = "org.apache.kafka.common.security"
_LISTENERS: Final = {"SASLTLS": "SASL_SSL", "TLS": "SSL"}


@dataclass(frozen=True)
class Secured:
    """Where the broker is, by each of its doors, and the files that a client needs."""

    plain: str
    sasl: str
    tls: str
    authority: Path
    client: Path


def quoted(text: str) -> str:
    """A text as a value of a JAAS line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _pem(folder: Path, name: str, cert: trustme.LeafCert) -> Path:
    """Key and certificates in one file; Java reads keys as PKCS #8 only."""
    key = serialization.load_pem_private_key(cert.private_key_pem.bytes(), None)
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file = folder / f"{name}.pem"
    file.write_bytes(text + b"".join(part.bytes() for part in cert.cert_chain_pems))
    file.chmod(0o600)
    return file


@contextlib.contextmanager
def secured_broker(folder: Path) -> Iterator[Secured]:
    """A running one; the user ``USER`` may come by PLAIN and by SCRAM-SHA-512."""
    authority = trustme.CA()
    trusted = folder / "ca.pem"
    authority.cert_pem.write_to_path(str(trusted))
    own = _pem(folder, "broker", authority.issue_cert("127.0.0.1", "localhost"))
    ports = {name: free_port() for name in _LISTENERS}

    def adapt(settings: dict[str, str]) -> None:
        for each in ("listeners", "advertised.listeners"):
            more = (f"{name}://127.0.0.1:{port}" for name, port in ports.items())
            settings[each] = ",".join((settings[each], *more))
        known = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"} | _LISTENERS
        settings["listener.security.protocol.map"] = ",".join(map(":".join, known.items()))
        for kind, file in (("key", own), ("trust", trusted)):
            settings[f"ssl.{kind}store.type"] = "PEM"
            settings[f"ssl.{kind}store.location"] = str(file)
        settings["listener.name.tls.ssl.client.auth"] = "required"
        sasl = "listener.name.sasltls"
        settings[f"{sasl}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-512"
        line = f"{_MODULE}.plain.PlainLoginModule required user_{USER}={quoted(PASSWORD)};"
        settings[f"{sasl}.plain.sasl.jaas.config"] = line.replace("\\", "\\\\")
        line = f"{_MODULE}.scram.ScramLoginModule required;"
        settings[f"{sasl}.scram-sha-512.sasl.jaas.config"] = line

    with adapted_broker(folder / "kafka", adapt) as broker:
        _add_user(broker.bootstrap)
        sasl, tls = (f"127.0.0.1:{ports[name]}" for name in ("SASLTLS", "TLS"))
        client = _pem(folder, "client", authority.issue_cert("ksql.example.com"))
        yield Secured(broker.bootstrap, sasl, tls, trusted, client)


def _add_user(bootstrap: str) -> None:
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(USER, scram, PASSWORD.encode())
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.alter_user_scram_credentials([change])[USER].result(PATIENCE_S)
