"""Options that several commands of the terminal take: definitions of variables, certificates."""

from __future__ import annotations

import ssl


def definition(text: str) -> tuple[str, str]:
    """Return name and value of ``name=value``; the value may have single quotes.

    Raises: ValueError.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"--define takes name=value, not '{text}'")
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] == "'"
    return name.strip(), value[1:-1].replace("''", "'") if quoted else value


def tls_of(cacert: str | None, cert: str | None) -> ssl.SSLContext | None:
    """Return what trusts the authorities of one PEM file and shows the certificate of the other.

    Returns: None if neither is given.
    Raises: ValueError for files that cannot be used.
    """
    if cacert is None and cert is None:
        return None
    context = ssl.create_default_context()
    try:
        if cacert is not None:
            context.load_verify_locations(cacert)
        if cert is not None:
            context.load_cert_chain(cert)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror or str(error)
        raise ValueError(f"cannot use the certificates of --cacert or --cert: {why}") from error
    return context
