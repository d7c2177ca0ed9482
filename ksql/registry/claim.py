"""The topic of the embedded registry becomes this service's own, once.

Versions before format zero kept schemas in the ledger's database; those that followed moved them
to the topic. A database whose schemas were never moved is refused: their ids would be given again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.core import StartError, format_zero
from ksql.history import LedgerUnavailable, holds_schemas, shown, sqlite_path

if TYPE_CHECKING:
    from ksql.registry.state import Draft
    from ksql.registry.store import SchemaStore


class SchemasOutOfReach(StartError):
    """The database that may still hold schemas cannot be read."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(
            f"whether the ledger's database {where} holds schemas cannot be read",
            detail=f"{reason}\nIf it does, their ids would be given to other schemas, and records"
            " that carry them would be misread.",
            hint="Make the database readable and start again; "
            "or move it away, if no schema was ever registered there.",
        )


class SchemasLeftInLedger(StartError):
    """A database with schemas of a version before format zero."""

    def __init__(self, where: str) -> None:
        super().__init__(
            format_zero.before(f"the schema registry in the ledger's database {where}"),
            detail="Without its schemas their ids would be given to others, and records that carry "
            "them would be misread.",
            hint=f"Start {format_zero.READER} with it once, which moves the schemas to Kafka.",
        )


class SchemasOfAnother(StartError):
    """The topic belongs to a registry that may be running."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} holds the schemas of another registry",
            detail="Two registries that do not know of each other would overwrite their schemas,"
            " and records that use them would be misread.",
            hint="Name that registry in ksql.schema.registry.url; or a topic of its own for the"
            " embedded one in ksql.schema.registry.topic, such as _schemas_ksql; or, if that"
            " registry runs no more, its topic there, to take it over.",
        )


def claim(store: SchemaStore, ledger_url: str, *, take_over: bool = False) -> None:
    """Note in the topic that it is this service's; ``take_over``: even if it is another one's.

    Raises: SchemasOfAnother, SchemasOutOfReach, SchemasLeftInLedger, StoreFailed.
    """
    state = store.open()
    if state.memory.moved_in:
        return
    if state.all_versions() and not take_over:
        raise SchemasOfAnother(store.where)
    _check_ledger(ledger_url)

    def note(draft: Draft) -> None:
        if not draft.memory.moved_in:  # else a server that starts at the same time has
            draft.put(replace(draft.memory, moved_in=True))

    store.write(note)


def _check_ledger(url: str) -> None:
    path = sqlite_path(url)
    if path is not None and not path.exists():
        return
    try:
        left = holds_schemas(url)
    except LedgerUnavailable as error:
        raise SchemasOutOfReach(shown(url), error.text()) from error
    if left:
        raise SchemasLeftInLedger(shown(url))
