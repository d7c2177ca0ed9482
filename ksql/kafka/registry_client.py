"""A schema registry behind Confluent's REST interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

from confluent_kafka.schema_registry import Schema as ClientSchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from ksql.formats import (
    UNNAMED,
    Reference,
    Registered,
    RegistryUnreachable,
    Schema,
    SchemaNotFound,
    SchemaRejected,
)
from ksql.kafka.registry_session import BoundedSession

T = TypeVar("T")
_SERVER_ERROR: Final = 500
_UNPROCESSABLE: Final = 422
_NOT_FOUND: Final = frozenset({40401, 40402, 40403})


@dataclass(frozen=True)
class RegistrySettings:
    """Where the registry is; may be sent to other processes."""

    url: str
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_properties(cls, properties: Mapping[str, object]) -> RegistrySettings | None:
        """Read ``ksql.schema.registry.url`` and its neighbours; None without it."""
        options = {
            name.removeprefix(_PREFIX): str(value)
            for name, value in properties.items()
            if name.startswith(_PREFIX) and value
        }
        url = options.pop("url", "")
        known = {name: value for name, value in options.items() if name in _OPTIONS}
        return cls(url, tuple(sorted(known.items()))) if url else None


def is_registry_property(name: str) -> bool:
    """Return whether the name is an option of the registry's client."""
    return name.startswith(_PREFIX) and name.removeprefix(_PREFIX) in _OPTIONS


_PREFIX: Final = "ksql.schema.registry."
_OPTIONS: Final = frozenset(
    {
        "basic.auth.user.info",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
    }
)


@lru_cache(maxsize=16)
def registry_of(settings: RegistrySettings) -> ConfluentRegistry:
    """Return the registry client of this process for those settings."""
    return ConfluentRegistry(settings)


class ConfluentRegistry:
    """A registry with Confluent's REST interface; schemas by id are asked for once."""

    def __init__(
        self, settings: RegistrySettings, timeout_s: float = 10.0, retries: int = 2
    ) -> None:
        self._url = settings.url
        options = {**dict(settings.options), "timeout": timeout_s, "max.retries": retries}
        self._client = SchemaRegistryClient({"url": settings.url, **options})
        rest = self._client._rest_client  # noqa: SLF001 - no public way
        rest.session.close()
        rest.session = BoundedSession(rest.verify, rest.auth, timeout_s)  # type: ignore[assignment]
        self._by_id: dict[int, Schema] = {}

    def by_id(self, schema_id: int) -> Schema:
        schema = self._by_id.get(schema_id)
        if schema is None:
            answer = self._call(lambda: self._client.get_schema(schema_id))
            if answer is None:
                raise SchemaNotFound(f"Schema {schema_id} not found")
            schema = self._by_id[schema_id] = _schema(answer)
        return schema

    def latest(self, subject: str) -> Registered | None:
        # the client's own method for this remembers its first answer for good
        registered = self._call(lambda: self._client.get_version(subject, "latest"))
        if registered is None:
            return None
        return Registered(
            _schema(registered.schema), registered.schema_id or 0, subject, registered.version or 0
        )

    def version(self, subject: str, version: int) -> Registered:
        registered = self._call(lambda: self._client.get_version(subject, version))
        if registered is None:
            raise SchemaNotFound(f"Version {version} of subject '{subject}' not found")
        return Registered(_schema(registered.schema), registered.schema_id or 0, subject, version)

    def register(self, subject: str, schema: Schema) -> int:
        sent = _sent(schema)
        # somebody may have deleted what we once registered
        self._client.clear_caches()  # type: ignore[no-untyped-call] # the client's
        try:
            return self._client.register_schema(subject, sent)
        except SchemaRegistryError as error:
            if error.http_status_code >= _SERVER_ERROR:
                raise RegistryUnreachable(self._url, str(error)) from error
            raise SchemaRejected(subject, str(error.error_message)) from error
        except Exception as error:
            raise RegistryUnreachable(self._url, str(error)) from error

    def check(self, subject: str, schema: Schema) -> None:
        """See Registry; a registry that cannot be asked refuses when it is registered."""
        try:
            fits = self._client.test_compatibility_all_versions(subject, _sent(schema))
        except SchemaRegistryError as error:
            if error.http_status_code >= _SERVER_ERROR:
                raise RegistryUnreachable(self._url, str(error)) from error
            if error.http_status_code == _UNPROCESSABLE:
                raise SchemaRejected(subject, str(error.error_message)) from error
            return
        except Exception as error:
            raise RegistryUnreachable(self._url, str(error)) from error
        if not fits:
            raise SchemaRejected(
                subject, "The schema is incompatible with an earlier schema of the subject"
            )

    def ids(self, subject: str) -> list[int]:
        versions = self._call(lambda: self._client.get_versions(subject)) or []
        return [self.version(subject, version).id for version in versions]

    def subjects(self) -> list[str]:
        return self._call(self._client.get_subjects) or []

    def delete(self, subject: str) -> None:
        self._call(lambda: self._client.delete_subject(subject))

    def delete_version(self, subject: str, version: int) -> None:
        self._call(lambda: self._client.delete_version(subject, version))

    def _call(self, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except SchemaRegistryError as error:
            if error.error_code in _NOT_FOUND or error.http_status_code == 404:
                return None
            raise RegistryUnreachable(self._url, str(error)) from error
        except Exception as error:
            # the errors of the client's HTTP library come through, and which one it is differs
            raise RegistryUnreachable(self._url, str(error)) from error


def _sent(schema: Schema) -> ClientSchema:
    references = [SchemaReference(r.name, r.subject, r.version) for r in schema.references]
    return ClientSchema(schema.text, schema.kind, references)


def _schema(answer: ClientSchema) -> Schema:
    references = tuple(
        Reference(r.name or "", r.subject or "", r.version or 0) for r in answer.references or ()
    )
    return Schema(answer.schema_type or UNNAMED, answer.schema_str or "", references)
