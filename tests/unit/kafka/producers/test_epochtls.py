"""Records of the epoch leave with the same security as all others, or not at all."""

from __future__ import annotations

import socket
import ssl
import sys
import threading

import pytest
import trustme

from ksql.http.connections import listen
from ksql.kafka.errors import WriteFailed
from ksql.kafka.producers import timestamp_zero

SSL = {"security.protocol": "SSL"}


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def shaken(authority, name, config):
    """Shake hands with a broker of that name, which asks for a certificate; who came."""
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(ours)
    authority.configure_trust(ours)
    ours.verify_mode = ssl.CERT_OPTIONAL
    seen = []
    with listen("127.0.0.1", 0) as sock:

        def serve():
            accepted, _ = sock.accept()
            try:
                with ours.wrap_socket(accepted, server_side=True) as behind:
                    seen.append(behind.getpeercert() or {})
            except OSError:  # the client has refused
                accepted.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with socket.create_connection(sock.getsockname(), 30) as plain:
            theirs = timestamp_zero.context({**SSL, **config})
            with theirs.wrap_socket(plain, server_hostname="127.0.0.1") as behind:
                behind.version()
        thread.join(30)
    return seen


def test_without_tls_there_is_none():
    assert timestamp_zero.context({"security.protocol": "SASL_PLAINTEXT"}) is None
    assert timestamp_zero.context({}) is None


@pytest.mark.parametrize("inline", [True, False])
def test_files_and_texts_do_the_same(authority, tmp_path, inline):
    own = authority.issue_cert("client.example")
    chain, key = own.cert_chain_pems[0].bytes().decode(), own.private_key_pem.bytes().decode()
    texts = {
        "ssl.ca.pem": authority.cert_pem.bytes().decode(),
        "ssl.certificate.pem": chain,
        "ssl.key.pem": key,
    }
    config = dict(texts)
    if not inline:
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        config = {name.replace(".pem", ".location"): str(tmp_path / name) for name in texts}
    [certificate] = shaken(authority, "127.0.0.1", config)
    assert "client.example" in str(certificate)


def test_broker_name_is_verified_unless_disabled(authority):
    config = {"ssl.ca.pem": authority.cert_pem.bytes().decode()}
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(authority, "other.example", config)
    loose = {**config, "ssl.endpoint.identification.algorithm": "none"}
    assert shaken(authority, "other.example", loose) == [{}]


def test_untrusted_certificates_are_refused(authority):
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(authority, "127.0.0.1", {"ssl.ca.pem": trustme.CA().cert_pem.bytes().decode()})


def test_ciphers_are_the_configured_ones(authority):
    context = timestamp_zero.context({**SSL, "ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384"})
    names = {each["name"] for each in context.get_ciphers() if each["protocol"] == "TLSv1.2"}
    assert names == {"ECDHE-RSA-AES256-GCM-SHA384"}


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}, "GSSAPI"),
        ({**SSL, "ssl.keystore.location": "a.p12"}, "PKCS12"),
    ],
)
def test_unsupported_property_of_the_other_client_is_named(config, why):
    with pytest.raises(WriteFailed) as caught:
        timestamp_zero.send_at_epoch({"bootstrap.servers": "a:1", **config}, "t", b"k", b"v", None)
    assert why in caught.value.text()


def test_the_producer_is_given_all_of_it(monkeypatch):
    given = []
    monkeypatch.setitem(sys.modules, "kafka.errors", Errors)

    def producer(config):
        given.append(config)
        return Refusing()

    monkeypatch.setattr(timestamp_zero, "_producer", producer)
    timestamp_zero.close()
    config = {"bootstrap.servers": "a:1", **SSL, "ssl.ca.pem": "X", "ssl.key.password": "p"}
    with pytest.raises(WriteFailed) as caught:
        timestamp_zero.send_at_epoch(config, "t", b"k", b"v", None)
    assert "refused" in caught.value.text()
    assert dict(given[0])["tls"] == (("ssl.ca.pem", "X"), ("ssl.key.password", "p"))


class Errors:
    """The library's errors, without the library."""

    class KafkaError(Exception):
        pass

    class MessageSizeTooLargeError(KafkaError):
        pass


class Refusing:
    def send(self, *_args, **_more):
        raise OSError("refused")

    def close(self, timeout):
        """It is closed."""
