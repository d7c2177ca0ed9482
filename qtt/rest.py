"""REST cases: a whole server, spoken to as clients do. Source: qtt/README.md#a-rest-case.

Answers in protobuf are made comparable: messages that are equal have one text.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import httpx
from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from ksql.core import Settings
from ksql.formats.protobuf import BrokenProtobuf
from ksql.formats.protobuf import schema as proto_schema
from ksql.sql.syntax import RawStatement, split
from qtt import tokens, topics, wire
from qtt.compare import check_topic, same
from qtt.model import Mismatch, QueryTestCase, RestPart, Unsupported
from server.wire import V1_JSON, V1_PROTOBUF

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

    from qtt.driver import Served


_REST_S: Final = 0.1
_STARTS_WITH: Final = "|starts_with"
_ACCEPT: Final = {"query": V1_JSON, "queryProto": V1_PROTOBUF}
_NOT_YET: Final = "is not supported yet"


def play(case: QueryTestCase, driver: Served) -> None:
    """Send the case's requests and compare the answers.

    Raises: Mismatch, Unsupported.
    """
    part = case.rest
    assert part is not None  # noqa: S101 - narrows the type for the only caller
    topics.prepare(case, driver, Settings(), _partitions(case))
    with httpx.Client(base_url=driver.url, timeout=driver.timeout_s) as http:
        talk = _RestSession(http, part.properties, driver.patience_s)
        try:
            answers = _answers(case, part, driver, talk)
        except Refused as error:
            check_refusal(part, error)
            return
    if part.error is not None:
        raise Mismatch(f"expected {tokens.dump(part.error)}, nothing was refused")
    _check_outputs(case, driver)
    for index, (want, got) in enumerate(zip(part.responses, answers, strict=False)):
        check_answer(f"answer {index}", want, got, ordered=part.ordered)
    if len(answers) < len(part.responses):
        raise Mismatch(f"{len(part.responses)} answers expected, {len(answers)} came")


def _partitions(case: QueryTestCase) -> int:
    """How many partitions a topic has for which the case names no number.

    One, so that all records have an order; but as many as a listed topic: it may be joined with it.
    """
    return max((topic.partitions for topic in case.topics), default=1)


# --- requests


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, body: Any, sql: str) -> None:
        super().__init__(f"HTTP {status}: {body}")
        self.status = status
        self.body = body
        self.sql = sql


@dataclass(frozen=True)
class _RestSession:
    http: httpx.Client
    properties: Mapping[str, Any]
    patience_s: float

    def admin(self, sql: str) -> list[Any]:
        answer = self.http.post("/ksql", json=self._body(sql))
        entities: list[Any] = self._read(answer, sql)
        return entities

    def query(
        self, sql: str, on_header: Callable[[], None] | None = None, accept: str = V1_JSON
    ) -> list[Any]:
        """All rows; ``on_header`` is called once the first line is there."""
        headers = {"accept": accept}
        with self.http.stream("POST", "/query", json=self._body(sql), headers=headers) as answer:
            text = ""
            for part in answer.iter_text():
                text += part
                if on_header is not None and answer.status_code == httpx.codes.OK:
                    on_header()
                    on_header = None
            rows: list[Any] = self._read(answer, sql, text)
            return rows

    def _body(self, sql: str) -> dict[str, Any]:
        return {"ksql": sql, "streamsProperties": dict(self.properties)}

    @staticmethod
    def _read(answer: httpx.Response, sql: str, text: str | None = None) -> Any:
        body = tokens.parse(answer.text if text is None else text)
        if answer.status_code != httpx.codes.OK:
            raise Refused(answer.status_code, body, sql)
        return body


def _answers(case: QueryTestCase, part: RestPart, driver: Served, talk: _RestSession) -> list[Any]:
    admin, queries = requests(case)
    answers = [{"admin": entity} for entity in talk.admin(admin)] if admin else []
    inputs = [wire.raw(record, driver) for step in case.steps for record in step.inputs]
    if part.waits:
        if len(queries) != 1:
            raise Unsupported("records that wait for one of several queries")
        return [*answers, {"query": talk.query(queries[0].text, lambda: driver.feed(inputs))}]
    driver.feed(inputs)
    expected = part.responses[len(answers) :]
    kinds = ("query", "queryProto") if part.proto else ("query",)
    questions = [(kind, query) for kind in kinds for query in queries]
    for (kind, query), want in zip_longest(questions, expected[: len(questions)]):
        answers.append(_answer_in_time(talk, kind, query, want, ordered=part.ordered))
    return answers


def requests(case: QueryTestCase) -> tuple[str, list[RawStatement]]:
    """The statements before the first query, and the queries."""
    raw = [statement for step in case.steps for s in step.statements for statement in split(s.sql)]
    first = next((i for i, statement in enumerate(raw) if _is_query(statement)), len(raw))
    return "\n".join(statement.text for statement in raw[:first]), raw[first:]


def _is_query(raw: RawStatement) -> bool:
    return raw.words[0].text.upper() == "SELECT"


def _is_push(raw: RawStatement) -> bool:
    return any(word.text.upper() == "EMIT" for word in raw.words)


def _answer_in_time(
    talk: _RestSession, kind: str, query: RawStatement, want: Any, *, ordered: bool
) -> dict[str, list[Any]]:
    """A query's answer; tables may still be filling, so a pull query is asked again."""
    deadline = time.monotonic() + talk.patience_s
    while True:
        answers = {kind: talk.query(query.text, accept=_ACCEPT[kind])}
        if want is None or _is_push(query) or time.monotonic() > deadline:
            return answers
        try:
            check_answer("", want, answers, ordered=ordered)
        except Mismatch:
            time.sleep(_REST_S)
        else:
            return answers


# --- comparison


def check_refusal(part: RestPart, error: Refused) -> None:
    """Whether an error is the one that was announced.

    Raises: Mismatch; Unsupported for what is not there yet.
    """
    want, said = part.error, str(error.body.get("message", ""))
    if said.endswith(_NOT_YET):
        raise Unsupported(said)
    if want is None:
        raise Mismatch(f"refused: {error}")
    if want.get("message", "") not in said:
        raise Mismatch(f"expected the message\n{want['message']}\ngot\n{said}")
    status = want.get("status")
    if status is not None and int(status) != error.status:
        raise Mismatch(f"HTTP {status} expected, {error.status} came")
    if str(want.get("type", "")).endswith("KsqlStatementErrorMessage"):
        quoted = error.body.get("statementText")
        if error.body.get("@type") != "statement_error" or not quoted:
            raise Mismatch(f"a statement's error expected, got {tokens.dump(error.body)}")


def check_answer(
    where: str, want: Mapping[str, Any], got: Mapping[str, Any], *, ordered: bool = False
) -> None:
    """Compare one answer of a request: an entity or the lines of a query.

    Raises: Mismatch.
    """
    ((kind, expected),) = want.items()
    if kind not in got:
        raise Mismatch(f"{where}: {kind} expected, got {tokens.dump(got)}")
    match kind:
        case "admin":
            _check_part(where, expected, got[kind])
        case "queryProto":
            _check_rows(where, *readable(where, expected, got[kind]), ordered=ordered)
        case _:
            _check_rows(where, expected, got[kind], ordered=ordered)


def _check_rows(where: str, want: Sequence[Any], got: Sequence[Any], *, ordered: bool) -> None:
    """Rows in any order unless they are ``ordered``, the rest by place."""
    shown = f"expected\n{tokens.dump(list(want))}\ngot\n{tokens.dump(list(got))}"
    if len(want) != len(got):
        raise Mismatch(f"{where}: {len(want)} lines expected, {len(got)} came: {shown}")
    left = [line["row"] for line in got if "row" in line]
    for expected, actual in zip(want, got, strict=True):
        if "row" not in expected:
            _check_part(where, expected, actual)
            continue
        candidates = left[:1] if ordered else left
        index = next((i for i, row in enumerate(candidates) if _holds(expected["row"], row)), None)
        if index is None:
            raise Mismatch(f"{where}: no row {tokens.dump(expected)}: {shown}")
        del left[index]


def _holds(want: Any, got: Any) -> bool:
    try:
        _check_part("", want, got)
    except Mismatch:
        return False
    return True


def _check_part(where: str, want: Any, got: Any) -> None:
    """Of objects only the expected members count."""
    match want, got:
        case dict(), dict():
            for name, value in want.items():
                if name.endswith(_STARTS_WITH):
                    actual = got.get(name.removesuffix(_STARTS_WITH))
                    if not str(actual).startswith(value):
                        raise Mismatch(f"{where}: {name} {value} expected, {actual} found")
                else:
                    _check_part(f"{where}.{name}", value, got.get(name))
        case list(), list() if len(want) == len(got):
            for a, b in zip(want, got, strict=True):
                _check_part(where, a, b)
        case _:
            if not same(want, got, exact=True):
                raise Mismatch(f"{where}: {tokens.dump(want)} expected, {tokens.dump(got)} found")


def _check_outputs(case: QueryTestCase, driver: Served) -> None:
    """The first records of each topic; there may be more."""
    for topic in dict.fromkeys(record.topic for record in case.outputs):
        expected = [record for record in case.outputs if record.topic == topic]
        deadline = time.monotonic() + driver.patience_s
        while len(records := driver.records(topic)) < len(expected):
            if time.monotonic() > deadline:
                break
            time.sleep(_REST_S)
        actual = [record._replace(headers=()) for record in records[: len(expected)]]
        check_topic(case, wire.source_of(topic, driver), expected, actual, driver.registry)


_PAIR: Final = ["key", "value"]


def readable(
    where: str, want: Sequence[Mapping[str, Any]], got: Sequence[Mapping[str, Any]]
) -> tuple[list[Any], list[Any]]:
    """Both lists with a text for each row's message, by the schema of the answer.

    Raises: Mismatch when a row is no such message.
    """
    kind = _message(where, got)
    try:
        texts = [_shown(line, lambda row: text_format.Parse(row, kind())) for line in want]
    except text_format.ParseError as error:
        raise Mismatch(f"{where}: the schema of the answer has no such row: {error}") from error
    try:
        shown = [_shown(line, lambda row: kind.FromString(_bytes_of(row))) for line in got]
    except (DecodeError, KeyError, ValueError) as error:
        raise Mismatch(f"{where}: a row is not a message of its schema: {error}") from error
    return texts, shown


def _message(where: str, got: Sequence[Mapping[str, Any]]) -> type[Message]:
    try:
        messages = proto_schema.load(got[0]["header"]["protoSchema"])
        _, descriptor = messages.chosen(None)
    except (BrokenProtobuf, IndexError, KeyError) as error:
        shown = tokens.dump(list(got))
        raise Mismatch(f"{where}: a header with a schema expected, got {shown}") from error
    return messages.message_class(descriptor)


def _bytes_of(row: Mapping[str, Any]) -> bytes:
    return base64.b64decode(row["protobufBytes"], validate=True)


def _shown(line: Mapping[str, Any], message: Any) -> Mapping[str, Any]:
    return {"row": str(_nested(message(line["row"])))} if "row" in line else line


def _nested(message: Message) -> dict[str, Any]:
    """Return the fields in the message's text; without presence only if they are set."""
    return {field.name: _value(field, value) for field, value in message.ListFields()}


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is None:
        return list(value) if field.is_repeated else value
    if not field.is_repeated:
        return _nested(value)
    items = [_nested(item) for item in value]
    return sorted(items, key=repr) if _is_pair(field.message_type) else items


def _is_pair(message: Descriptor) -> bool:
    """The entry of a map, which has no order."""
    return message.name.endswith("Entry") and [f.name for f in message.fields] == _PAIR
