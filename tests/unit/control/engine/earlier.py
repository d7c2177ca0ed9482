"""Queries as versions before the gathering of windows have stored them."""

from __future__ import annotations

from dataclasses import replace

from ksql.control.engine.changes import PutQuery
from ksql.control.engine.ports import Command
from ksql.sql.plan import codec
from ksql.sql.plan.walk import with_sources


def as_before(plan):
    """The stored plan as such a version would have made it."""
    stored = codec.loads(plan)
    below = with_sources(stored.sink.source, lambda each: replace(each, scattered=False))
    sink = replace(stored.sink, source=below, gathered=False)
    return codec.dumps(replace(stored, sink=sink, partitions=0, placement=""))


def earlier(world, sink):
    """Let the query that writes a source be one of such a version, in the catalog and the log."""
    query = world.query(sink)
    old = replace(query, plan=as_before(query.plan))
    world.log.commands = [
        replace(command, changes=tuple(_before(change, old) for change in command.changes))
        for command in world.log.commands
    ]
    world.engine.replay(len(world.log.commands), Command("q", "", (PutQuery(old),)))


def _before(change, old):
    if isinstance(change, PutQuery) and change.query.id == old.id:
        return PutQuery(replace(change.query, plan=old.plan))
    return change
