"""The paths of the registry's REST interface, with their parameters.

Source: Confluent Schema Registry API reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import AfterValidator

from ksql.registry.errors import InvalidMode, InvalidVersion, NoSuchSchema, NotOffered
from ksql.registry.kinds import KINDS, serialized
from ksql.registry.state import EVERYWHERE
from ksql.registry.steps import LATEST, MODES, Mode
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.formats import Schema
    from ksql.registry.subjects import Subjects

_MAX: Final = (1 << 31) - 1
_MAX_DIGITS: Final = 10
_SERIALIZED: Final = "serialized"


def _plain_subject(text: str) -> str:
    """Return the name behind a path's part; the default context may be named."""
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


async def _all_or_one(request: Request) -> str:
    """Return the subject that the path names; none is all of them."""
    return _plain_subject(request.path_params.get("subject", EVERYWHERE))


Subject = Annotated[str, AfterValidator(_plain_subject)]
Version = Annotated[str, AfterValidator(unquote)]
SchemaId = Annotated[int, AfterValidator(_possible_id)]
Flag = Annotated[bool, Query()]
Offset = Annotated[int, Query()]
Effective = Annotated[bool, Query(alias="defaultToGlobal")]
Format = Annotated[str, Query(alias="format")]
Prefix = Annotated[str, Query(alias="subjectPrefix")]
OnlyDeleted = Annotated[bool, Query(alias="deletedOnly")]
AllOrOne = Annotated[str, Depends(_all_or_one)]


def routers(subjects: Subjects) -> tuple[APIRouter, ...]:
    """Return all paths over a registry."""
    return (
        _root(),
        _schemas(subjects),
        _uses(subjects),
        _subjects(subjects),
        _versions(subjects),
        _compatibility(subjects),
        _settings(subjects),
    )


def _page(entries: Sequence[Any], offset: int, limit: int) -> list[Any]:
    return list(entries[offset:] if limit < 0 else entries[offset : offset + limit])


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


def _text(subjects: Subjects, schema: Schema, format_: str) -> str:
    if format_ == _SERIALIZED:
        return serialized(schema, subjects.imported(schema))
    return schema.text


def _schemas(subjects: Subjects) -> APIRouter:
    routes = APIRouter(prefix="/schemas")

    @routes.get("")
    def listed(
        prefix: Prefix = "",
        deleted: Flag = False,
        latest: Annotated[bool, Query(alias="latestOnly")] = False,
        offset: Offset = 0,
        limit: Offset = -1,
    ) -> list[Json]:
        entries = subjects.entries(_plain_subject(prefix), deleted=deleted, latest=latest)
        return [entry_json(one) for one in _page(entries, offset, limit)]

    @routes.get("/types")
    def types() -> tuple[str, ...]:
        return KINDS

    @routes.get("/ids/{schema_id}")
    def by_id(
        schema_id: SchemaId,
        format_: Format = "",
        with_last: Annotated[bool, Query(alias="fetchMaxId")] = False,
    ) -> Json:
        stored = subjects.schema(schema_id)
        out = schema_json(stored.schema, stored.guid) | {
            "schema": _text(subjects, stored.schema, format_)
        }
        return out | {"maxId": subjects.last_id()} if with_last else out

    @routes.get("/ids/{schema_id}/schema", response_class=PlainTextResponse)
    def text_by_id(schema_id: SchemaId, format_: Format = "") -> Response:
        return Response(
            _text(subjects, subjects.schema(schema_id).schema, format_), media_type=MEDIA_TYPE
        )

    @routes.get("/guids/{guid}")
    def by_guid(guid: str, format_: Format = "") -> Json:
        stored = subjects.schema_by_guid(guid)
        return schema_json(stored.schema, stored.guid) | {
            "schema": _text(subjects, stored.schema, format_)
        }

    return routes


def _uses(subjects: Subjects) -> APIRouter:
    routes = APIRouter(prefix="/schemas/ids/{schema_id}")

    @routes.get("/subjects")
    def subjects_by_id(
        schema_id: SchemaId,
        subject: str | None = None,
        deleted: Flag = False,
        offset: Offset = 0,
        limit: Offset = -1,
    ) -> list[str]:
        names = dict.fromkeys(one.subject for one in subjects.uses(schema_id, deleted=deleted))
        return _page([one for one in names if subject in (None, one)], offset, limit)

    @routes.get("/versions")
    def versions_by_id(
        schema_id: SchemaId,
        subject: str | None = None,
        deleted: Flag = False,
        offset: Offset = 0,
        limit: Offset = -1,
    ) -> list[Json]:
        uses = [
            {"subject": one.subject, "version": one.version}
            for one in subjects.uses(schema_id, deleted=deleted)
            if subject in (None, one.subject)
        ]
        return _page(uses, offset, limit)

    return routes


def _subjects(subjects: Subjects) -> APIRouter:
    routes = APIRouter(prefix="/subjects")
    one = "/{subject}"

    @routes.get("")
    def listed(
        prefix: Prefix = "",
        deleted: Flag = False,
        only_deleted: OnlyDeleted = False,
        offset: Offset = 0,
        limit: Offset = -1,
    ) -> list[str]:
        subject_prefix = "" if prefix == ":*:" else _plain_subject(prefix)
        names = subjects.subjects(subject_prefix, deleted=deleted, only_deleted=only_deleted)
        return _page(names, offset, limit)

    @routes.post(one)
    def lookup(
        subject: Subject, body: SchemaBody, normalize: Flag = False, deleted: Flag = False
    ) -> Json:
        entry = subjects.lookup(subject, body.parsed(), normalize=normalize, deleted=deleted)
        return entry_json(entry)

    @routes.delete(one)
    def delete(subject: Subject, permanent: Flag = False) -> list[int]:
        return subjects.delete_subject(subject, permanent=permanent)

    @routes.get(one + "/versions")
    def versions(
        subject: Subject,
        deleted: Flag = False,
        only_deleted: OnlyDeleted = False,
        offset: Offset = 0,
        limit: Offset = -1,
    ) -> list[int]:
        numbers = subjects.versions(subject, deleted=deleted, only_deleted=only_deleted)
        return _page(numbers, offset, limit)

    @routes.post(one + "/versions")
    def register(subject: Subject, body: SchemaBody, normalize: Flag = False) -> Json:
        given = [None if one in (None, -1) else one for one in (body.id, body.version)]
        entry = subjects.register(
            subject, body.parsed(), normalize=normalize, schema_id=given[0], version=given[1]
        )
        return entry_json(entry)

    return routes


def _versions(subjects: Subjects) -> APIRouter:
    routes = APIRouter(prefix="/subjects/{subject}/versions/{version}")

    @routes.get("")
    def version(
        subject: Subject,
        version: Version,
        deleted: Flag = False,
        format_: Format = "",
    ) -> Json:
        entry = subjects.version(subject, _version(version), deleted=deleted)
        return entry_json(entry) | {"schema": _text(subjects, entry.schema, format_)}

    @routes.delete("")
    def delete_version(subject: Subject, version: Version, permanent: Flag = False) -> int:
        return subjects.delete_version(subject, _version(version), permanent=permanent)

    @routes.get("/schema")
    def version_text(subject: Subject, version: Version, deleted: Flag = False) -> Response:
        entry = subjects.version(subject, _version(version), deleted=deleted)
        return Response(entry.schema.text, media_type=MEDIA_TYPE)

    @routes.get("/referencedby")
    def referenced(subject: Subject, version: Version) -> list[int]:
        return subjects.referring(subject, _version(version))

    return routes


def _compatibility(subjects: Subjects) -> APIRouter:
    routes = APIRouter(prefix="/compatibility/subjects/{subject}/versions")

    @routes.post("")
    @routes.post("/{version}")
    def compatible(
        subject: Subject,
        body: SchemaBody,
        version: Version | None = None,
        verbose: Flag = False,
        normalize: Flag = False,
    ) -> Json:
        chosen = None if version is None else _version(version)
        faults = subjects.faults(subject, body.parsed(), chosen, normalize=normalize)
        out: Json = {"is_compatible": not faults}
        return out | {"messages": faults} if verbose else out

    return routes


def _settings(subjects: Subjects) -> APIRouter:
    routes = APIRouter()

    @routes.get("/config")
    @routes.get("/config/{subject}")
    def config(of: AllOrOne, effective: Effective = False) -> Json:
        return config_json(subjects.config(of, effective=effective), "compatibilityLevel")

    @routes.put("/config")
    @routes.put("/config/{subject}")
    def set_config(of: AllOrOne, body: ConfigBody) -> Json:
        return config_json(subjects.set_config(body.parsed(), of), "compatibility")

    @routes.delete("/config")
    @routes.delete("/config/{subject}")
    def reset_config(of: AllOrOne) -> Json:
        return config_json(subjects.reset_config(of), "compatibility")

    @routes.get("/mode")
    @routes.get("/mode/{subject}")
    def mode(of: AllOrOne, effective: Effective = False) -> Json:
        return {"mode": subjects.mode(of, effective=effective)}

    @routes.put("/mode")
    @routes.put("/mode/{subject}")
    def set_mode(of: AllOrOne, body: ModeBody, force: Flag = False) -> Json:
        return {"mode": subjects.set_mode(_mode(body), of, force=force)}

    @routes.delete("/mode/{subject}")
    def reset_mode(subject: Subject) -> Json:
        return {"mode": subjects.reset_mode(subject)}

    return routes


def _mode(body: ModeBody) -> Mode:
    for known in MODES:
        if body.mode.upper() == known:
            return known
    raise InvalidMode
