"""The errors of the ledger's database, a class for each kind of remedy."""

from __future__ import annotations

from ksql.core.errors import ServerError, StartError


class BadLedgerUrl(StartError):
    """A ``ksql.ledger.url`` that names no database we can use."""

    def __init__(self, shown: str, detail: str) -> None:
        super().__init__(
            f"ksql.ledger.url {shown} cannot be used: {detail}",
            hint="Use sqlite:///path/to/ledger.db or postgresql://user@host:5432/name with "
            "ksql.ledger.password.file.",
        )


class NewerLedger(StartError):
    """A database that a later version of the service has migrated."""

    def __init__(self, where: str, revisions: tuple[str, ...]) -> None:
        super().__init__(
            f"the ledger {where} has schema {', '.join(revisions)},"
            " which this version does not know",
            hint="Start the version that wrote it, or name another database in ksql.ledger.url.",
        )


class LedgerUnavailable(ServerError):
    """The database cannot be reached, is locked or full: the same call may work later."""

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(f"the ledger {where} is not available", detail=detail)


class LedgerDamaged(LedgerUnavailable):
    """The SQLite file is not a whole database: it works again only with another file."""


class EntryRefused(ServerError):
    """The database will never take this entry."""

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(f"the ledger {where} refuses the entry", detail=detail)
