"""The registry's REST interface: Confluent's paths, parameters, codes and shapes.

Source: Confluent Schema Registry API reference.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import unquote

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import AfterValidator
from starlette.exceptions import HTTPException

from ksql.formats.schema_registry import Schema
from ksql.registry.errors import (
    BadRequest,
    InvalidMode,
    InvalidVersion,
    NoSuchSchema,
    NotOffered,
    RegistryError,
)
from ksql.registry.kinds import KINDS, serialized
from ksql.registry.steps import LATEST, MODES, Mode
from ksql.registry.subjects import Subjects
from ksql.registry.wire import (
    MEDIA_TYPE,
    ConfigBody,
    Json,
    ModeBody,
    SchemaBody,
    config_json,
    entry_json,
    schema_json,
)
from ksql.web.access import Access
from ksql.web.guarded import guard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

_log = logging.getLogger(__name__)
_MAX: Final = (1 << 31) - 1
_MAX_DIGITS: Final = 10
_SERIALIZED: Final = "serialized"


class _Answer(JSONResponse):
    media_type = MEDIA_TYPE


def _plain_subject(text: str) -> str:
    """The name behind a path's part; the default context may be named."""
    name = unquote(text)
    if name.startswith(":.:"):
        return name[3:]
    if name.startswith(":."):
        raise NotOffered("A context other than the default one")
    return name


def _version(text: str) -> int:
    if text in ("latest", "-1"):
        return LATEST
    number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    if not number or not 1 <= int(text) <= _MAX:
        raise InvalidVersion(text)
    return int(text)


def _possible_id(number: int) -> int:
    if not 1 <= number <= _MAX:
        raise NoSuchSchema(number)
    return number


Subject = Annotated[str, AfterValidator(_plain_subject)]
Version = Annotated[str, AfterValidator(unquote)]
SchemaId = Annotated[int, AfterValidator(_possible_id)]
Flag = Annotated[bool, Query()]
Offset = Annotated[int, Query()]
Effective = Annotated[bool, Query(alias="defaultToGlobal")]


def create_app(subjects: Subjects, access: Access | None = None) -> FastAPI:
    """The interface over a registry; ``access`` says who may ask."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, default_response_class=_Answer)
    for routes in (_root(), _schemas(subjects), _subjects(subjects), _settings(subjects)):
        app.include_router(routes)
    app.add_exception_handler(RegistryError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _no_resource)
    app.add_exception_handler(Exception, _defect)
    app.add_middleware(EncodedPaths)
    guard(app, access or Access())
    return app


class EncodedPaths:
    """Routes by the path as it was sent: a subject's name may have an encoded slash."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http" and scope.get("raw_path"):
            path = scope["raw_path"].decode("ascii").partition("?")[0]
            scope = {**scope, "path": path.rstrip("/") or "/"}
        await self._app(scope, receive, send)


# --- errors


def _told(status: int, code: int, message: str) -> Response:
    return _Answer({"error_code": code, "message": message}, status)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RegistryError)  # noqa: S101 - registered for nothing else
    return _told(error.status, error.code, error.message)


async def _malformed(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for nothing else
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _told(400, 400, f"Malformed JSON: {first.get('ctx', {}).get('error', '')}")
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    if first["type"] == "extra_forbidden":
        return _told(422, BadRequest.code, f"Unrecognized field: {where}")
    return _told(422, BadRequest.code, f"{where}: {first['msg']}" if where else first["msg"])


async def _no_resource(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for nothing else
    return _told(error.status_code, error.status_code, f"HTTP {error.status_code} {error.detail}")


async def _defect(_request: Request, error: Exception) -> Response:
    _log.error("registry_request_failed", exc_info=error)
    return _told(500, 50001, "Error in the schema registry, see its log")


# --- resources


def _page(found: Sequence[Any], offset: int, limit: int) -> list[Any]:
    return list(found[offset:] if limit < 0 else found[offset : offset + limit])


def _root() -> APIRouter:
    routes = APIRouter()

    @routes.get("/")
    def root() -> Json:
        return {}

    @routes.get("/contexts")
    def contexts() -> list[str]:
        return ["."]

    @routes.get("/v1/metadata/id")
    def identity() -> Json:
        return {"scope": {"path": [], "clusters": {}}}

    return routes


def _schemas(subjects: Subjects) -> APIRouter:
    routes = APIRouter(prefix="/schemas")

    def shown(schema: Schema, wanted: str) -> str:
        if wanted == _SERIALIZED:
            return serialized(schema, subjects.imported(schema))
        return schema.text

    @routes.get("")
    def listed(
        prefix: Annotated[str, Query(alias="subjectPrefix")] = "",
        deleted: Flag = False,
        latest: Annotated[bool, Query(alias="latestOnly")] = False,
        offset: Offset = 0,
        limit: Offset = -1,
    ) -> list[Json]:
        found = subjects.entries(_plain_subject(prefix), deleted=deleted, latest=latest)
        return [entry_json(one) for one in _page(found, offset, limit)]

    @routes.get("/types")
    def types() -> tuple[str, ...]:
        return KINDS

    @routes.get("/ids/{schema_id}")
    def by_id(
        schema_id: SchemaId,
        wanted: Annotated[str, Query(alias="format")] = "",
        with_last: Annotated[bool, Query(alias="fetchMaxId")] = False,
    ) -> Json:
        found = subjects.schema(schema_id)
        out = schema_json(found.schema, found.guid) | {"schema": shown(found.schema, wanted)}
        return out | {"maxId": subjects.last_id()} if with_last else out

    @routes.get("/ids/{schema_id}/schema", response_class=PlainTextResponse)
    def text_by_id(
        schema_id: SchemaId, wanted: Annotated[str, Query(alias="format")] = ""
    ) -> Response:
        return Response(shown(subjects.schema(schema_id).schema, wanted), media_type=MEDIA_TYPE)

    @routes.get("/ids/{schema_id}/subjects")
    def subjects_by_id(
        schema_id: SchemaId,
        subject: str | None = None,
        deleted: Flag = False,
        offset: Offset = 0,
        limit: Offset = -1,
    ) -> list[str]:
        found = dict.fromkeys(one.subject for one in subjects.uses(schema_id, deleted=deleted))
        return _page([one for one in found if subject in (None, one)], offset, limit)

    @routes.get("/ids/{schema_id}/versions")
    def versions_by_id(
        schema_id: SchemaId,
        subject: str | None = None,
        deleted: Flag = False,
        offset: Offset = 0,
        limit: Offset = -1,
    ) -> list[Json]:
        found = [
            {"subject": one.subject, "version": one.version}
            for one in subjects.uses(schema_id, deleted=deleted)
            if subject in (None, one.subject)
        ]
        return _page(found, offset, limit)

    @routes.get("/guids/{guid}")
    def by_guid(guid: str, wanted: Annotated[str, Query(alias="format")] = "") -> Json:
        found = subjects.schema_by_guid(guid)
        return schema_json(found.schema, found.guid) | {"schema": shown(found.schema, wanted)}

    return routes


def _subjects(subjects: Subjects) -> APIRouter:
    routes = APIRouter()
    one = "/subjects/{subject}"
    its_version = one + "/versions/{version}"
    tried = "/compatibility" + one + "/versions"

    @routes.get("/subjects")
    def listed(
        prefix: Annotated[str, Query(alias="subjectPrefix")] = "",
        deleted: Flag = False,
        only_deleted: Annotated[bool, Query(alias="deletedOnly")] = False,
        offset: Offset = 0,
        limit: Offset = -1,
    ) -> list[str]:
        wanted = "" if prefix == ":*:" else _plain_subject(prefix)
        found = subjects.subjects(wanted, deleted=deleted, only_deleted=only_deleted)
        return _page(found, offset, limit)

    @routes.post(one)
    def lookup(
        subject: Subject, body: SchemaBody, normalize: Flag = False, deleted: Flag = False
    ) -> Json:
        found = subjects.lookup(subject, body.made(), normalize=normalize, deleted=deleted)
        return entry_json(found)

    @routes.delete(one)
    def delete(subject: Subject, permanent: Flag = False) -> list[int]:
        return subjects.delete_subject(subject, permanent=permanent)

    @routes.get(one + "/versions")
    def versions(
        subject: Subject,
        deleted: Flag = False,
        only_deleted: Annotated[bool, Query(alias="deletedOnly")] = False,
        offset: Offset = 0,
        limit: Offset = -1,
    ) -> list[int]:
        found = subjects.versions(subject, deleted=deleted, only_deleted=only_deleted)
        return _page(found, offset, limit)

    @routes.post(one + "/versions")
    def register(subject: Subject, body: SchemaBody, normalize: Flag = False) -> Json:
        given = [None if one in (None, -1) else one for one in (body.id, body.version)]
        made = subjects.register(
            subject, body.made(), normalize=normalize, schema_id=given[0], version=given[1]
        )
        return entry_json(made)

    @routes.get(its_version)
    def version(
        subject: Subject,
        version: Version,
        deleted: Flag = False,
        wanted: Annotated[str, Query(alias="format")] = "",
    ) -> Json:
        found = subjects.version(subject, _version(version), deleted=deleted)
        out = entry_json(found)
        if wanted == _SERIALIZED:
            out["schema"] = serialized(found.schema, subjects.imported(found.schema))
        return out

    @routes.delete(its_version)
    def delete_version(subject: Subject, version: Version, permanent: Flag = False) -> int:
        return subjects.delete_version(subject, _version(version), permanent=permanent)

    @routes.get(its_version + "/schema")
    def text(subject: Subject, version: Version, deleted: Flag = False) -> Response:
        found = subjects.version(subject, _version(version), deleted=deleted)
        return Response(found.schema.text, media_type=MEDIA_TYPE)

    @routes.get(its_version + "/referencedby")
    def referenced(subject: Subject, version: Version) -> list[int]:
        return subjects.referring(subject, _version(version))

    @routes.post(tried)
    @routes.post(tried + "/{version}")
    def compatible(
        subject: Subject,
        body: SchemaBody,
        version: Version | None = None,
        verbose: Flag = False,
        normalize: Flag = False,
    ) -> Json:
        chosen = None if version is None else _version(version)
        found = subjects.faults(subject, body.made(), chosen, normalize=normalize)
        out: Json = {"is_compatible": not found}
        return out | {"messages": found} if verbose else out

    return routes


def _settings(subjects: Subjects) -> APIRouter:
    routes = APIRouter()

    @routes.get("/config")
    def config() -> Json:
        return config_json(subjects.config(), "compatibilityLevel")

    @routes.put("/config")
    def set_config(body: ConfigBody) -> Json:
        return config_json(subjects.set_config(body.made()), "compatibility")

    @routes.delete("/config")
    def reset_config() -> Json:
        return config_json(subjects.reset_config(), "compatibility")

    @routes.get("/config/{subject}")
    def subject_config(subject: Subject, effective: Effective = False) -> Json:
        found = subjects.config(subject, effective=effective)
        return config_json(found, "compatibilityLevel")

    @routes.put("/config/{subject}")
    def set_subject_config(subject: Subject, body: ConfigBody) -> Json:
        return config_json(subjects.set_config(body.made(), subject), "compatibility")

    @routes.delete("/config/{subject}")
    def reset_subject_config(subject: Subject) -> Json:
        return config_json(subjects.reset_config(subject), "compatibility")

    @routes.get("/mode")
    def mode() -> Json:
        return {"mode": subjects.mode()}

    @routes.put("/mode")
    def set_mode(body: ModeBody, force: Flag = False) -> Json:
        return {"mode": subjects.set_mode(_mode(body), force=force)}

    @routes.get("/mode/{subject}")
    def subject_mode(subject: Subject, effective: Effective = False) -> Json:
        return {"mode": subjects.mode(subject, effective=effective)}

    @routes.put("/mode/{subject}")
    def set_subject_mode(subject: Subject, body: ModeBody, force: Flag = False) -> Json:
        return {"mode": subjects.set_mode(_mode(body), subject, force=force)}

    @routes.delete("/mode/{subject}")
    def reset_subject_mode(subject: Subject) -> Json:
        return {"mode": subjects.reset_mode(subject)}

    return routes


def _mode(body: ModeBody) -> Mode:
    for known in MODES:
        if body.mode.upper() == known:
            return known
    raise InvalidMode
