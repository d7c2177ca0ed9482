"""The subject of a client's certificate, for the application: ASGI's extension ``tls``.

TLS has verified the certificate by then; one that is not verified is not shown.
Source: ASGI TLS extension, ``client_cert_name``; RFC 4514, text of a subject.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

    from starlette.types import ASGIApp, Receive, Scope, Send

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
