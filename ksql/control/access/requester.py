"""The requester: the user of the request that is being answered, and what it may do.

The doors name it once for a request; every statement, query and row is admitted by it. So a new
route cannot forget to hand it on. Where nobody signs in, everything is permitted.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ksql.control.access.needs import Need, names_in, needs
from ksql.control.access.rights import ALL, EVERY, Grants, Right
from ksql.core import KsqlError, excerpt, seeing
from ksql.sql.syntax import parse_one, split

if TYPE_CHECKING:
    from ksql.core import Kind, Settings
    from ksql.sql.catalog import Catalog, PersistentQuery
    from ksql.sql.syntax import ast

_audit: Final = logging.getLogger("ksql.audit")


class NotPermitted(KsqlError):
    """A user without the right that a statement or a path needs."""

    code = 40300

    def __init__(self, user: str, need: Need | None = None) -> None:
        who = f"the user {excerpt(user)}" if user else "a request without a user"
        super().__init__(
            f"{who} may not {_action_text(need)}",
            hint="Ask for a line in the file that the server's ksql.rights.file names.",
        )


def _action_text(need: Need | None) -> str:
    if need is None:
        return "do anything here"
    verb = "see" if need.right is None else need.right.value
    if need.looked_up:
        return f"{verb} that query"
    if need.right == Right.ADMIN:
        return "administer the server"
    if need.name == EVERY:
        return f"{verb} all {'streams and tables' if need.kind == 'source' else need.kind + 's'}"
    shown = excerpt(need.name)
    return f"{verb} {shown}" if need.kind == "source" else f"{verb} the {need.kind} {shown}"


def digest(text: str) -> str:
    """Return what stands for a statement's text in the audit: 32 digits of its SHA-256."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Requester:
    """A user of the present request, from an address, at a path; ``audited``: each is logged.

    ``renewed`` gives the grants as they are later; without it they stay as they are.
    """

    name: str = ""
    grants: Grants = ALL
    address: str = ""
    path: str = ""
    audited: bool = False
    renewed: Callable[[], Grants] | None = field(default=None, compare=False)

    def admit(
        self, statement: ast.Statement, text: str, catalog: Catalog, settings: Settings
    ) -> None:
        """Check what a statement needs, and note it.

        Raises: NotPermitted.
        """
        if self.grants is ALL and not self.audited:
            return
        self.demand(needs(statement, catalog, settings), text)

    def admit_row(self, source: str, right: Right, text: str) -> None:
        """Check a right on one stream or table, and note it.

        Raises: NotPermitted.
        """
        if self.grants is ALL and not self.audited:
            return
        self.demand((Need(right, "source", source),), text)

    def demand(self, needed: Sequence[Need], text: str) -> None:
        """Check some rights, and note the outcome of a request or statement of that text.

        Raises: NotPermitted.
        """
        lacking = self.lacks(needed)
        if self.audited:
            self._note(text, "refused" if lacking is not None else "admitted")
        if lacking is not None:
            raise lacking

    def check(self, statement: ast.Statement, catalog: Catalog, settings: Settings) -> None:
        """Check once more what a statement needs, right before it is carried out.

        Those before it may have waited for long: the grants are those of this moment.
        Raises: NotPermitted.
        """
        now = self._renewed()
        if now.grants is ALL:
            return
        lacking = now.lacks(needs(statement, catalog, settings))
        if lacking is not None:
            raise lacking

    def still(self, needed: Sequence[Need]) -> None:
        """Check rights of a request that is under way, by the grants of this moment.

        Raises: NotPermitted.
        """
        if self.renewed is None:
            return
        lacking = self._renewed().lacks(needed)
        if lacking is not None:
            raise lacking

    def lacks(self, needed: Sequence[Need]) -> NotPermitted | None:
        """Return what the first right is that is not there; None if all are."""
        if self.grants.empty:
            return NotPermitted(self.name)
        for need in needed:
            if not _is_held(need, self.grants):
                return NotPermitted(self.name, need)
        return None

    def sees(self, kind: Kind, name: str) -> bool:
        """Return whether lists show that object."""
        return self.grants is ALL or self.grants.sees(kind, name)

    def sees_query(self, query: PersistentQuery) -> bool:
        """Return whether lists show a query: if one may control it, or sees all that is in it."""
        if self.grants is ALL:
            return True
        if self._controls(query.sink or EVERY):
            return True
        return all(self.sees("source", name) for name in (query.sink, *query.sources) if name)

    def sees_text(self, text: str, sink: str | None, catalog: Catalog) -> bool:
        """Return whether a stored statement is shown: to who may control its result, or sees all.

        One that cannot be read any more is not shown to the latter.
        """
        if self.grants is ALL or self._controls(sink or EVERY):
            return True
        try:
            parsed = [parse_one(raw, types=catalog.types) for raw in split(text)]
        except KsqlError:
            return False
        names = (name for one in parsed for name in names_in(one.statement))
        return all(self.sees("source", name) for name in names)

    def sees_push(self, user: str) -> bool:
        """Return whether lists show the push query of that user, and whether one may end it."""
        if self.grants is ALL:
            return True
        return (user != "" and user == self.name) or self.grants.may(Right.OPERATE)

    def _renewed(self) -> Requester:
        return self if self.renewed is None else replace(self, grants=self.renewed())

    def _controls(self, name: str) -> bool:
        return self.grants.may(Right.OPERATE, name=name) or self.grants.may(Right.DEFINE, name=name)

    def _note(self, text: str, outcome: str) -> None:
        _audit.info(
            "statement",
            extra={
                "user": self.name,
                "address": self.address,
                "path": self.path,
                "digest": digest(text),
                "outcome": outcome,
            },
        )


def _is_held(need: Need, grants: Grants) -> bool:
    if need.right is None:
        return grants.sees(need.kind, need.name)
    if need.own:
        return grants.owns(need.right, need.name)
    return grants.may(need.right, need.kind, need.name)


_present: ContextVar[Requester] = ContextVar("requester", default=Requester())  # noqa: B039 - frozen


def current() -> Requester:
    """Return who asks at the moment; the server itself may do everything."""
    return _present.get()


@contextlib.contextmanager
def acting(requester: Requester) -> Iterator[None]:
    """Have what is done meanwhile, also in threads that carry the context on, done by a user."""
    everything = requester.grants is ALL
    token = _present.set(requester)
    try:
        with seeing(None if everything else requester.sees):
            yield
    finally:
        _present.reset(token)


def seen_queries(catalog: Catalog) -> list[str]:
    """Return the ids of the queries that messages for the present user may show."""
    requester = current()
    return [query.id for query in catalog.queries.values() if requester.sees_query(query)]


def sees_command(command_id: str) -> bool:
    """Return whether the present user may learn what became of a command: ``stream/`S`/create``.

    One about a query, or the whole service, needs the right to operate or define everything.
    """
    requester = current()
    if requester.grants is ALL:
        return True
    kind, _, rest = command_id.partition("/")
    name = rest.rpartition("/")[0]
    name = name[1:-1].replace("``", "`") if name[:1] == name[-1:] == "`" else name
    if kind in ("stream", "table", "type"):
        return requester.sees("source", name)
    if kind == "topic":
        return requester.sees("topic", name)
    return any(requester.grants.may(right) for right in (Right.OPERATE, Right.DEFINE))
