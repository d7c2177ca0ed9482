"""TLS: the same application, HTTP/2 for those who offer it; bad key stores are refused by name."""

from __future__ import annotations

import re
import socket
import ssl

import httpx
import pytest
import trustme
from cryptography.hazmat.primitives import serialization as pem
from websockets.sync.client import connect

from ksql.http.tls import (
    CLIENTS,
    CLIENTS_TRUSTED,
    KEY_PASSWORD,
    KEYSTORE,
    TRUSTED,
    TRUSTED_TYPE,
    TYPE,
    BadKeyStore,
    BadTrustStore,
    NoCertificate,
    NoPemStore,
    NoTrustStore,
    Renewable,
    client_context,
    server_context,
)
from tests.unit.http.clients import PATIENCE_S, hosted


async def version(scope, receive, send):
    text = f"{scope['scheme']} {scope['http_version']}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text})


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def store(authority, tmp_path):
    """A key store as a PEM file, the key before the certificates."""
    path = tmp_path / "server.pem"
    issued = authority.issue_cert("127.0.0.1")
    path.write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    return {KEYSTORE: str(path), TYPE: "PEM"}


@pytest.mark.parametrize(("http2", "settings"), [(True, "https 2"), (False, "https 1.1")])
def test_the_client_chooses_the_version(authority, store, http2, settings):
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with hosted(version, server_context(store)) as port:
        with httpx.Client(http2=http2, verify=trusting) as client:
            assert client.get(f"https://127.0.0.1:{port}/").text == settings
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/")


async def subject(scope, receive, send):
    """Answer with the subject of the client's certificate."""
    text = scope.get("extensions", {}).get("tls", {}).get("client_cert_name", "none")
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": text})
        await send({"type": "websocket.close"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text.encode()})


def test_the_application_knows_whose_certificate_it_is(authority, store, tmp_path):
    """In either version of HTTP, over websockets, and in what h11 reads; none of no authority."""
    trusted = tmp_path / "trusted.pem"
    authority.cert_pem.write_to_path(str(trusted))
    asking = server_context(store | {CLIENTS: "REQUESTED", CLIENTS_TRUSTED: str(trusted)})
    issued = authority.issue_cert("c.example", common_name="a,b", organization_name="O")
    shown, hidden = ssl.create_default_context(), ssl.create_default_context()
    for side in (shown, hidden):
        authority.configure_trust(side)
    issued.configure_cert(shown)
    with hosted(subject, asking) as port:
        place = f"127.0.0.1:{port}/"
        for http2 in (True, False):
            with httpx.Client(http2=http2, verify=shown) as client:
                assert {"CN=a\\,b", "O=O"} <= set(
                    re.split(r"(?<!\\),", client.get(f"https://{place}").text)
                )
                upgrade = {"upgrade": "other", "connection": "upgrade"}
                if not http2:
                    assert "CN=a" in client.get(f"https://{place}", headers=upgrade).text
        with connect(f"wss://{place}", ssl=shown) as websocket:
            assert "CN=a" in websocket.recv()
        assert httpx.get(f"https://{place}", verify=hidden).text == "none"
        stranger = ssl.create_default_context()
        authority.configure_trust(stranger)
        trustme.CA().issue_cert("c.example", common_name="a").configure_cert(stranger)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"https://{place}", verify=stranger)


def test_a_handshake_that_does_not_come_has_seconds(authority, store):
    """Nor the first head behind one."""
    with hosted(version, server_context(store), head_s=0.5) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as sock:
            assert sock.recv(1) == b""
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        with (
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as sock,
            trusting.wrap_socket(sock, server_hostname="127.0.0.1") as behind,
        ):
            assert behind.recv(1) == b""


def test_a_server_without_a_certificate():
    with pytest.raises(NoCertificate, match="no certificate"):
        server_context({})


def test_a_store_of_java(store):
    with pytest.raises(NoPemStore, match="JKS"):
        server_context({KEYSTORE: store[KEYSTORE]})


@pytest.mark.parametrize("content", [b"", b"not PEM", None])
def test_a_store_that_holds_no_key(tmp_path, content):
    path = tmp_path / "server.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadKeyStore, match=re.escape(str(path))) as caught:
        server_context({KEYSTORE: str(path), TYPE: "pem"})
    assert "private key" in caught.value.text()


def test_a_key_with_a_password(authority, store, tmp_path):
    issued = authority.issue_cert("127.0.0.1")
    key = pem.load_pem_private_key(issued.private_key_pem.bytes(), None)
    locked = key.private_bytes(
        pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.BestAvailableEncryption(b"right")
    )
    path = tmp_path / "locked.pem"
    path.write_bytes(locked + b"".join(each.bytes() for each in issued.cert_chain_pems))
    store = {**store, KEYSTORE: str(path)}
    server_context(store | {KEY_PASSWORD: "right"})  # raises nothing
    for wrong in ({}, {KEY_PASSWORD: "wrong"}):
        with pytest.raises(BadKeyStore):
            server_context(store | wrong)


# --- clients' certificates ------------------------------------------------------------------------


@pytest.fixture
def trusted(authority, tmp_path):
    """The settings of a server that trusts the authority's clients."""
    path = tmp_path / "trusted.pem"
    path.write_bytes(authority.cert_pem.bytes())
    return {TRUSTED: str(path), TRUSTED_TYPE: "PEM"}


def asking(authority, port, *, issuer=None):
    """What a client gets, with a certificate of the issuer or without one."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if issuer is not None:
        issuer.issue_cert("client.example").configure_cert(context)
    return httpx.get(f"https://127.0.0.1:{port}/", verify=context).text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clients", "own", "foreign", "none"),
    [
        ("required", True, False, False),
        ("REQUESTED", True, False, True),
        ("none", True, True, True),
    ],
)
def test_client_certificate_requirements(authority, store, trusted, clients, own, foreign, none):
    context = server_context({**store, **trusted, CLIENTS: clients})
    with hosted(version, context) as port:
        for issuer, answered in ((authority, own), (trustme.CA(), foreign), (None, none)):
            if answered:
                assert asking(authority, port, issuer=issuer) == "https 1.1"
            else:
                with pytest.raises(httpx.TransportError):
                    asking(authority, port, issuer=issuer)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({}, NoTrustStore),
        ({TRUSTED: "x.jks"}, NoPemStore),
        ({TRUSTED: "no/such/file", TRUSTED_TYPE: "pem"}, BadTrustStore),
    ],
)
def test_server_that_verifies_clients_without_trust_store(store, more, error):
    with pytest.raises(error, match="trust"):
        server_context({**store, CLIENTS: "requested", **more})


def test_a_trust_store_without_certificates(store, tmp_path):
    path = tmp_path / "trusted.pem"
    path.write_text("nothing")
    more = {CLIENTS: "required", TRUSTED: str(path), TRUSTED_TYPE: "PEM"}
    with pytest.raises(BadTrustStore, match=re.escape(str(path))):
        server_context(store | more)


@pytest.mark.slow
def test_clients_have_a_trust_store_of_their_own(authority, store, trusted, tmp_path):
    """The company's authority signs brokers: not each holder of its certificates is a client."""
    clients = trustme.CA()
    own = tmp_path / "clients.pem"
    own.write_bytes(clients.cert_pem.bytes())
    settings = {**store, **trusted, CLIENTS: "required", CLIENTS_TRUSTED: str(own)}
    with hosted(version, server_context(settings)) as port:
        assert asking(authority, port, issuer=clients) == "https 1.1"
        with pytest.raises(httpx.TransportError):
            asking(authority, port, issuer=authority)
    server_context({**store, CLIENTS: "required", CLIENTS_TRUSTED: str(own)})  # it is enough
    with pytest.raises(BadTrustStore, match="nowhere"):
        server_context({**settings, CLIENTS_TRUSTED: "nowhere"})


# --- files that are read again --------------------------------------------------------------------


def shown(authority, port):
    """The certificate that a client is shown."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as sock,
        context.wrap_socket(sock, server_hostname="127.0.0.1") as behind,
    ):
        return behind.getpeercert(binary_form=True)


@pytest.mark.slow
def test_new_connections_have_the_files_that_were_read_last(authority, store, tmp_path):
    clients, others = trustme.CA(), trustme.CA()
    own = tmp_path / "clients.pem"
    own.write_bytes(clients.cert_pem.bytes())
    settings = {**store, CLIENTS: "requested", CLIENTS_TRUSTED: str(own)}
    context = Renewable(lambda: server_context(settings))
    assert context.verify_mode is ssl.CERT_OPTIONAL
    with hosted(version, context) as port:
        before = shown(authority, port)
        assert asking(authority, port, issuer=clients) == "https 1.1"
        issued = authority.issue_cert("127.0.0.1")
        with open(store[KEYSTORE], "wb") as file:  # noqa: PTH123 - a text of the settings
            file.write(issued.private_key_and_cert_chain_pem.bytes())
        own.write_bytes(others.cert_pem.bytes())
        assert shown(authority, port) == before
        context.renew()
        after = shown(authority, port)
        assert after != before
        assert asking(authority, port, issuer=others) == "https 1.1"
        with pytest.raises(httpx.TransportError):
            asking(authority, port, issuer=clients)  # trusted no more
        own.write_text("nothing")
        with pytest.raises(BadTrustStore):
            context.renew()
        assert shown(authority, port) == after


def test_the_side_of_a_client_is_read_again_too(authority, store, tmp_path):
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(trustme.CA().cert_pem.bytes())
    context = Renewable(lambda: client_context({TRUSTED: str(trusted), TRUSTED_TYPE: "PEM"}))
    assert context.check_hostname
    with hosted(version, server_context(store)) as port:
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"https://127.0.0.1:{port}/", verify=context)
        trusted.write_bytes(authority.cert_pem.bytes())
        context.renew()
        assert httpx.get(f"https://127.0.0.1:{port}/", verify=context).text == "https 1.1"
