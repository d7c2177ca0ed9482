"""JSON bodies of the embedded Schema Registry's REST API, in Confluent's form.

Source: Confluent Schema Registry API reference.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from ksql.formats import UNNAMED, Reference, Schema
from ksql.registry.errors import InvalidCompatibility, InvalidSchema, NotOffered
from ksql.registry.kinds import KINDS, Level
from ksql.registry.steps import Config, SubjectVersion

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
Json = dict[str, Any]
_MAX: Final = (1 << 31) - 1


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class ReferenceBody(_Body):
    """A schema that another one imports."""

    name: str
    subject: str
    version: int = Field(ge=-1, le=_MAX)


class SchemaBody(_Body):
    """A schema that is registered, looked up or tried."""

    schema_text: str | None = Field(default=None, alias="schema")
    kind: str | None = Field(default=None, alias="schemaType")
    references: list[ReferenceBody] | None = None
    id: int | None = Field(default=None, ge=-1, le=_MAX)
    version: int | None = Field(default=None, ge=-1, le=_MAX)
    subject: str | None = None
    guid: str | None = None
    metadata: Json | None = None
    rules: Json | None = Field(default=None, alias="ruleSet")
    tags_to_add: list[Any] | None = Field(default=None, alias="schemaTagsToAdd")
    tags_to_remove: list[Any] | None = Field(default=None, alias="schemaTagsToRemove")

    def parsed(self) -> Schema:
        """Return the schema.

        Raises: InvalidSchema, NotOffered for data contracts.
        """
        if _says_something(self.metadata):
            raise NotOffered("Metadata of a schema")
        if _says_something(self.rules):
            raise NotOffered("A rule set of a schema")
        if self.tags_to_add or self.tags_to_remove:
            raise NotOffered("Tagging of a schema")
        kind = self.kind or UNNAMED
        if kind not in KINDS:
            raise InvalidSchema(f"schema type {kind} is not supported")
        references = tuple(
            Reference(one.name, one.subject, one.version) for one in self.references or ()
        )
        return Schema(kind, self.schema_text or "", references)


def _says_something(part: Json | None) -> bool:
    return any(part.values()) if part else False


class ConfigBody(_Body):
    """Settings of a subject, or of all."""

    compatibility: str | None = None
    normalize: bool | None = None
    alias: str | None = None
    group: str | None = Field(default=None, alias="compatibilityGroup")
    policy: str | None = Field(default=None, alias="compatibilityPolicy")
    validate_fields: bool | None = Field(default=None, alias="validateFields")
    default_metadata: Json | None = Field(default=None, alias="defaultMetadata")
    override_metadata: Json | None = Field(default=None, alias="overrideMetadata")
    default_rules: Json | None = Field(default=None, alias="defaultRuleSet")
    override_rules: Json | None = Field(default=None, alias="overrideRuleSet")
    level: str | None = Field(default=None, alias="compatibilityLevel")

    def parsed(self) -> Config:
        """Return the settings.

        Raises: InvalidCompatibility, NotOffered.
        """
        for field, more in type(self).model_fields.items():
            offered = field in ("compatibility", "normalize", "level")
            if not offered and getattr(self, field):
                raise NotOffered(f"The setting {more.alias or field}")
        level = self.compatibility or self.level
        try:
            chosen = None if level is None else Level(level.upper())
        except ValueError as error:
            raise InvalidCompatibility from error
        return Config(chosen, self.normalize)


class ModeBody(_Body):
    """A mode."""

    mode: str


def schema_json(schema: Schema, guid: str) -> Json:
    """Return a schema.

    The kind that needs no name has none, since old clients know nothing else.
    """
    out: Json = {"guid": guid}
    if schema.kind != UNNAMED:
        out["schemaType"] = schema.kind
    if schema.references:
        out["references"] = [asdict(one) for one in schema.references]
    return {**out, "schema": schema.text}


def entry_json(entry: SubjectVersion) -> Json:
    """Return a version of a subject."""
    out: Json = {"subject": entry.subject, "version": entry.version, "id": entry.id}
    if entry.deleted:
        out["deleted"] = True
    return {**out, **schema_json(entry.schema, entry.guid)}


def config_json(config: Config, key: Literal["compatibility", "compatibilityLevel"]) -> Json:
    """Return settings; the answer to a change has another name than the answer to a read."""
    out: Json = {}
    if config.compatibility is not None:
        out[key] = config.compatibility.value
    if config.normalize is not None:
        out["normalize"] = config.normalize
    return out
