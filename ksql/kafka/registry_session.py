"""Requests of the schema registry's client: one limit of time and one of bytes for a whole answer.

The client's own session limits each read only. A registry that sends a byte now and then would hold
a statement for ever, and one that sends without end would fill the memory.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from confluent_kafka.schema_registry.common._httpx_compat import httpx  # what the client takes

MOST_BYTES: Final = 32 * 1024 * 1024


class AnswerTooSlow(Exception):
    """The answer was not whole in time; it is not tried again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it did not answer within {seconds:g} s")


class AnswerTooLong(Exception):
    """The answer has more bytes than any schema needs."""

    def __init__(self) -> None:
        super().__init__(f"its answer has more than {MOST_BYTES} bytes")


class BoundedSession:
    """Stands in for the client's session; a connection for each request, outside of event loops."""

    def __init__(self, verify: Any, auth: Any, timeout_s: float) -> None:
        self._options = {"verify": verify, "auth": auth, "timeout": None}
        self._timeout_s = timeout_s

    def request(self, method: str, url: str, **more: Any) -> Any:
        """Return the whole answer.

        Raises: AnswerTooSlow, AnswerTooLong; and errors of the library's transport, after which
            the client tries again.
        """
        return asyncio.run(self._answer(method, url, more))

    def close(self) -> None:
        """Do nothing: each request has closed its connection."""

    async def _answer(self, method: str, url: str, more: dict[str, Any]) -> Any:
        content = bytearray()
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                httpx.AsyncClient(**self._options) as http,
                http.stream(method, url, **more) as answer,
            ):
                async for part in answer.aiter_bytes():
                    content += part
                    if len(content) > MOST_BYTES:
                        raise AnswerTooLong
        except TimeoutError as error:
            raise AnswerTooSlow(self._timeout_s) from error
        return httpx.Response(answer.status_code, content=bytes(content))
