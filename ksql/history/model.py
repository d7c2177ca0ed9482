"""The ledger's database tables (SQLAlchemy): upgrades, and the registry's schemas and subjects."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Dialect,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Text,
    TypeDecorator,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """The root of all tables; constraints have names, so that a migration can find them."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ix": "ix_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
        }
    )


class SafeText(TypeDecorator[str]):
    """Text that every database takes: no NUL (PostgreSQL refuses it), no lone surrogates."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Show what cannot be stored by a sign or an escape."""
        del dialect
        if value is None:
            return None
        return value.replace("\0", "\u2400").encode("utf-8", "backslashreplace").decode("utf-8")


class JsonText(TypeDecorator[str]):
    """JSON that is text on our side and JSON to the database, so that it can be queried there.

    PostgreSQL's ``json`` (not ``jsonb``) keeps the order of members and escaped NULs.
    """

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> object:
        """Read the text; one that is not JSON is refused."""
        del dialect
        return None if value is None else json.loads(value)

    def process_result_value(self, value: object, dialect: Dialect) -> str | None:
        """Write it as the plan codec does."""
        del dialect
        if value is None:
            return None
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_Serial = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER counts up by itself there
_Json = JSON(none_as_null=True)


class UpgradeRow(Base):
    """One attempt to replace a query."""

    __tablename__ = "upgrades"
    seq: Mapped[int] = mapped_column(_Serial, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(600), unique=True)
    service_id: Mapped[str] = mapped_column(String(255))
    query_id: Mapped[str] = mapped_column(String(300), index=True)
    sink: Mapped[str] = mapped_column(SafeText)
    statement_old: Mapped[str] = mapped_column(SafeText)
    statement_new: Mapped[str] = mapped_column(SafeText)
    plan_old: Mapped[str | None] = mapped_column(JsonText)
    plan_new: Mapped[str | None] = mapped_column(JsonText)
    classes: Mapped[list[str]] = mapped_column(_Json)
    traits: Mapped[list[str]] = mapped_column(_Json)
    guarantees: Mapped[list[dict[str, Any]]] = mapped_column(_Json)
    changes: Mapped[list[dict[str, Any]] | None] = mapped_column(_Json)
    inherited: Mapped[list[str] | None] = mapped_column(_Json)
    accepted: Mapped[bool] = mapped_column(Boolean)
    reasons: Mapped[list[str]] = mapped_column(_Json)
    command_offset: Mapped[int | None] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(String(16))
    batch_id: Mapped[int | None] = mapped_column(BigInteger)
    offsets: Mapped[dict[str, dict[str, int]] | None] = mapped_column(_Json)
    gap_ms: Mapped[int | None] = mapped_column(BigInteger)
    outcome_reason: Mapped[str] = mapped_column(SafeText, default="")
    rebuilt: Mapped[bool] = mapped_column(Boolean, default=False)
    mode: Mapped[str] = mapped_column(String(16), server_default="in_place")
    candidate: Mapped[int | None] = mapped_column(BigInteger)
    difference: Mapped[dict[str, int] | None] = mapped_column(_Json)
    user_name: Mapped[str | None] = mapped_column(SafeText)
    begun_ms: Mapped[int] = mapped_column(BigInteger)
    finished_ms: Mapped[int | None] = mapped_column(BigInteger)


class SchemaRow(Base):
    """A schema of the embedded registry; never deleted, so that no id is given twice."""

    __tablename__ = "registry_schemas"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    guid: Mapped[str] = mapped_column(String(36), unique=True)
    kind: Mapped[str] = mapped_column(String(16))
    text: Mapped[str] = mapped_column(SafeText)


class SchemaReferenceRow(Base):
    """A schema that another one imports, and the name of the import."""

    __tablename__ = "registry_references"

    schema_id: Mapped[int] = mapped_column(ForeignKey("registry_schemas.id"), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(SafeText)
    subject: Mapped[str] = mapped_column(String(600), index=True)
    version: Mapped[int] = mapped_column(Integer)


class SubjectRow(Base):
    """A subject's settings and the last version it ever had; the subject "" is for all others."""

    __tablename__ = "registry_subjects"

    subject: Mapped[str] = mapped_column(String(600), primary_key=True)
    last_version: Mapped[int] = mapped_column(Integer, default=0)
    compatibility: Mapped[str | None] = mapped_column(String(32))
    mode: Mapped[str | None] = mapped_column(String(16))
    normalize: Mapped[bool | None] = mapped_column(Boolean)


class SubjectVersionRow(Base):
    """A version of a subject; ``deleted`` ones are still found by who asks for them."""

    __tablename__ = "registry_versions"

    subject: Mapped[str] = mapped_column(ForeignKey("registry_subjects.subject"), primary_key=True)
    version: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    schema_id: Mapped[int] = mapped_column(ForeignKey("registry_schemas.id"), index=True)
    deleted: Mapped[bool] = mapped_column(Boolean, default=False)
