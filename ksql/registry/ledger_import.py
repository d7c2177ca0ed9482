"""Schemas that an earlier version kept in the ledger's database move to the registry's topic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.core.error_table import SCHEMAS_OF_ANOTHER, SCHEMAS_OUT_OF_REACH
from ksql.core.errors import StartError
from ksql.history.database import shown, sqlite_path
from ksql.history.errors import LedgerUnavailable
from ksql.history.schemas import OldSchemas, read_schemas
from ksql.registry import records as r
from ksql.registry.model import SubjectSettings

if TYPE_CHECKING:
    from ksql.registry.state import Draft, Schemas
    from ksql.registry.store import SchemaStore


class SchemasCollide(StartError):
    """The topic holds other schemas under the same ids or versions."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(
            f"the schemas in the ledger's database do not fit those in {where}",
            detail=f"{what} is another schema there. One of the two would be lost, and records"
            " that use it with it.",
            hint="Name a topic of their own in ksql.schema.registry.topic.",
        )


def move_in(store: SchemaStore, ledger_url: str, *, take_over: bool = False) -> int:
    """Write what the database has and the topic has not, once; how many versions that were.

    It is one transaction: nothing is there, or all of it and the note that it is. ``take_over``:
    the topic may be another registry's.

    Raises: SCHEMAS_OF_ANOTHER, SCHEMAS_OUT_OF_REACH, SchemasCollide, StoreFailed.
    """
    state = store.open()
    if state.memory.moved_in:
        return 0
    if state.all_versions() and not take_over:
        raise SCHEMAS_OF_ANOTHER(where=store.where)
    old_schemas = _read(ledger_url)

    def move(draft: Draft) -> int:
        if draft.memory.moved_in:  # by a server that starts at the same time
            return 0
        missing = _missing(draft, old_schemas, store.where)
        for one in missing:
            draft.put(one)
        for given in old_schemas.settings:
            if draft.settings(given.subject) == SubjectSettings():
                settings = SubjectSettings(given.compatibility, given.mode, given.normalize)
                draft.set_settings(given.subject, settings)
        draft.put(
            replace(
                draft.memory,
                last_id=max(draft.memory.last_id, old_schemas.last_id),
                last_versions={**old_schemas.last_versions, **draft.memory.last_versions},
                moved_in=True,
            )
        )
        return len(missing)

    return store.write(move)


def _read(url: str) -> OldSchemas:
    path = sqlite_path(url)
    if path is not None and not path.exists():
        return OldSchemas()
    try:
        return read_schemas(url)
    except LedgerUnavailable as error:
        raise SCHEMAS_OUT_OF_REACH(where=shown(url), reason=error.text()) from error


def _missing(state: Schemas, old_schemas: OldSchemas, where: str) -> list[r.VersionSet]:
    missing = []
    for old in old_schemas.versions:
        schema = old_schemas.schemas[old.schema_id]
        kept = next((o for o in state.kept(old.subject) if o.version == old.version), None)
        if kept is not None and kept.schema != schema:
            raise SchemasCollide(where, f'version {old.version} of subject "{old.subject}"')
        known = state.schema(old.schema_id)
        if known is not None and known.schema != schema:
            raise SchemasCollide(where, f"id {old.schema_id}")
        if kept is None:
            missing.append(
                r.VersionSet(
                    subject=old.subject,
                    version=old.version,
                    id=old.schema_id,
                    schema=schema,
                    deleted=old.deleted,
                )
            )
    return sorted(missing, key=lambda one: (one.id, one.subject, one.version))
