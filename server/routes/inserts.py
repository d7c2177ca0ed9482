"""POST /inserts-stream: rows that a client sends, acknowledged one by one meanwhile.

Source: ksqlDB developer guide, REST API, endpoint /inserts-stream.

The client sends rows while it reads one acknowledgement per row.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, NoReturn

from fastapi import APIRouter, Request, Response
from pydantic import Field
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ksql.control.access import NotPermitted
from ksql.control.statements import Delivery, UnknownField
from ksql.core import Token, requested_token
from ksql.http import BodyTooLong
from server.answers.row_encoders import dumps
from server.api import answers, takes
from server.context import AppContext
from server.dependencies import Context, accepts
from server.errors import ShuttingDown, streamed_body
from server.service import RowInserter
from server.wire import DELIMITED, JSON, BadRequest, Body, Texts, parse_body

_LOOK_S = 0.25  # between two looks whether the server ends, while a client is silent


@dataclass(frozen=True)
class AckForm:
    """How acknowledgements are written: one per line, or as the elements of an array."""

    first: bytes
    between: bytes
    after: bytes
    last: bytes

    @classmethod
    def of(cls, media_type: str) -> AckForm:
        """Return the form of a media type."""
        if media_type == DELIMITED:
            return cls(b"", b"", b"\n", b"")
        return cls(b"[", b",\n", b"", b"]\n")

    def text(self, acks: Sequence[dict[str, Any]], *, begun: bool) -> bytes:
        """Return some of them; ``begun`` if others came before."""
        texts = [dumps(ack) + self.after for ack in acks]
        return (self.between if begun and texts else b"") + self.between.join(texts)


async def lines(pieces: AsyncIterator[bytes], longest: int) -> AsyncIterator[list[bytes]]:
    """Yield the lines that each piece of a body completes, blank ones left out; never none at all.

    Raises: BodyTooLong for a line; those before it have been given.
    """
    rest = bytearray()
    async for piece in pieces:
        first, *others = piece.split(b"\n")
        rest += first
        if others:
            whole = [bytes(rest), *others[:-1]]
            rest = bytearray(others[-1])
            if nonblank := [line for line in whole if line.strip()]:
                yield _bounded(nonblank, longest)
        if len(rest) > longest:
            raise BodyTooLong(longest, "a line")
    if rest.strip():
        yield [bytes(rest)]


def _bounded(batch: list[bytes], longest: int) -> list[bytes]:
    if any(len(line) > longest for line in batch):
        raise BodyTooLong(longest, "a line")
    return batch


class InsertsResponse(Response):
    """Acknowledgements are sent while rows are still being received.

    Starlette's own streaming response watches for a disconnect by receiving, and would lose rows.
    """

    def __init__(
        self,
        context: AppContext,
        writer: RowInserter,
        first: list[bytes],
        more: AsyncIterator[list[bytes]],
        form: AckForm,
        media_type: str,
        token: Token | None = None,
    ) -> None:
        """Take ``token``: what the client has seen before; with it acknowledgements have tokens."""
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._context = context
        self._writer = writer
        self._first = first
        self._more = more
        self._form = form
        self._token = token
        self._sequence = 0
        self._ended = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write rows and report on each until there are no more, or one ends the stream."""
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        await _send(send, self._form.first)
        try:
            await self._write(send, self._first)
            while not self._ended and (batch := await self._next()) is not None:
                await self._write(send, batch)
        except ClientDisconnect:
            return
        except (BodyTooLong, ShuttingDown) as error:
            begun = self._sequence > 0
            await _send(send, self._form.text([self._ack(self._refusal(error))], begun=begun))
        await _send(send, self._form.last, more=False)

    async def _next(self) -> list[bytes] | None:
        """Return the next rows; None at the end.

        Raises: ShuttingDown, when the server ends while the client is silent.
        """
        coming = asyncio.ensure_future(anext(self._more, None))
        try:
            while not coming.done():
                await asyncio.wait((coming,), timeout=_LOOK_S)
                if not coming.done() and self._context.state == "TERMINATING":
                    raise ShuttingDown
            return coming.result()
        finally:
            coming.cancel()

    async def _write(self, send: Send, batch: list[bytes]) -> None:
        begun = self._sequence > 0
        acks = await self._context.call(self._acks, batch)
        if acks:
            await _send(send, self._form.text(acks, begun=begun))

    def _acks(self, batch: list[bytes]) -> list[dict[str, Any]]:
        """Send rows that have come together at once; each has an answer of its own."""
        begun: list[Delivery | dict[str, Any]] = []
        for line in batch:
            begun.append(self._begin(line))
            if self._ended:
                break
        return [self._ack(one) for one in begun]

    def _begin(self, line: bytes) -> Delivery | dict[str, Any]:
        """Return a row under way, or why it is not."""
        try:
            _ = self._context.service  # raises once the server is shutting down
            return self._writer.begin(parse_row(line))
        except Exception as error:  # noqa: BLE001 - the status is sent: the stream must report it
            return self._refusal(error)

    def _ack(self, begun: Delivery | dict[str, Any]) -> dict[str, Any]:
        outcome = begun if isinstance(begun, dict) else self._outcome(begun)
        sequence, self._sequence = self._sequence, self._sequence + 1
        status = "error" if "error_code" in outcome else "ok"
        return {"status": status, "seq": sequence, **outcome}

    def _outcome(self, delivery: Delivery) -> dict[str, Any]:
        try:
            written = delivery.wait()
        except Exception as error:  # noqa: BLE001 - as above
            return self._refusal(error)
        if self._token is None or written is None:
            return {}
        self._token = self._token.with_({(written.topic, written.partition): written.end})
        return {"consistencyToken": self._token.text()}

    def _refusal(self, error: Exception) -> dict[str, Any]:
        body = streamed_body(error)
        self._ended = self._ended or _ends_all(error, body)
        return {"error_code": body["error_code"], "message": body["message"]}


def _ends_all(error: Exception, body: dict[str, Any]) -> bool:
    """Return whether a row's error ends the stream: no row after it can be better."""
    ending = BadRequest | BodyTooLong | UnknownField | NotPermitted
    return isinstance(error, ending) or body["error_code"] >= 50000


async def _send(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


def parse_row(line: bytes) -> dict[str, Any]:
    """Return a row; numbers with a point keep their digits.

    Raises: BadRequest.
    """
    try:
        row = json.loads(line, parse_float=Decimal, parse_constant=_refuse)
    except RecursionError as error:
        raise BadRequest("the row is not valid JSON: it is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"the row is not valid JSON: no UTF-8 at byte {error.start}") from error
    except (json.JSONDecodeError, _NoJson) as error:
        raise BadRequest(f"the row is not valid JSON: {error}") from error
    except ValueError as error:  # what is left is Python's bound of whole numbers
        raise BadRequest("the row has a whole number of too many digits") from error
    if not isinstance(row, dict):
        raise BadRequest("a row must be a JSON object")
    if b"\\u" in line or b"\xed" in line:
        _refuse_halves(row)
    return row


def _refuse_halves(row: dict[str, Any]) -> None:
    """Refuse half a surrogate pair in any text: UTF-8 cannot say it, so it could not be kept."""
    try:
        json.dumps(row, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise BadRequest(
            f"the row is not valid JSON: {half} is one half of a surrogate pair"
        ) from error


def _refuse(name: str) -> NoReturn:
    raise _NoJson(f"{name} is not a number of JSON")


class _NoJson(ValueError):
    """A number that Python reads as JSON, though JSON has none such."""


router = APIRouter(tags=["rows"])
AckKind = Annotated[str, accepts(DELIMITED, JSON)]


class InsertsRequest(Body):
    """The first line of /inserts-stream."""

    target: str
    properties: Texts = Field(default={})
    request_properties: Texts = Field(default={}, alias="requestProperties")


class Acknowledgement(Body):
    """The outcome of one row; ``error_code`` and ``message`` say why it was not written.

    ``consistencyToken``, where the request is about tokens, names all rows written so far.
    """

    status: Literal["ok", "error"]
    seq: int
    error_code: int | None = None
    message: str | None = None
    consistency_token: str | None = Field(default=None, alias="consistencyToken")


_ACKS = answers(list[Acknowledgement], JSON)
_ACKS[200]["content"][DELIMITED] = {"schema": {"type": "string"}}


def _lines() -> dict[str, Any]:
    """Describe the body: lines of JSON, the first of them an InsertsRequest."""
    body = takes(InsertsRequest)
    body["requestBody"]["description"] = "This object on the first line, then a row per line."
    return body


@router.post("/inserts-stream", responses=_ACKS, openapi_extra=_lines())
async def inserts_stream(request: Request, kind: AckKind, context: Context) -> Response:
    """Write rows: the first line names the stream, each line after it is a row."""
    service = context.service
    pieces = lines(request.stream(), request.app.state.max_line_bytes)
    first = await anext(pieces, [b""])
    body = parse_body(first[0], InsertsRequest)
    token = requested_token(body.request_properties, service)
    writer = await context.call(service.inserts, body.target, body.properties)
    return InsertsResponse(context, writer, first[1:], pieces, AckForm.of(kind), kind, token)
