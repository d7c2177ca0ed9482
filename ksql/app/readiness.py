"""Decides whether a server should get requests: the reasons of ``/readyz``, without any request.

Each reason is a word that a monitor can compare and a sentence for people. All of them are read
from memory, so that a probe waits for nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.app.node import Node

Reasons = dict[str, str]
"""Why a server is not ready: a sentence by word."""


class Readiness:
    """The verdict on one server; for any number of threads.

    A table that is created later fills while the others answer. So filling counts only until all
    tables of the start were whole once.
    """

    def __init__(self, node: NodeState) -> None:
        self._node = node
        self._was_filled = False

    def reasons(self) -> Reasons:
        """Return why the server is not ready; nothing if it is."""
        node, reasons = self._node, Reasons()
        if not node.is_up:
            if node.replaying:
                reasons["replaying"] = "the command topic is not replayed yet"
            else:
                reasons["starting"] = "the queries are being started"
        texts = {
            "kafka": node.kafka(),
            "leadership": node.leadership(),
            "filling": self._filling(),
        }
        return reasons | {word: text for word, text in texts.items() if text}

    def _filling(self) -> str:
        if self._was_filled or not self._node.is_up:
            return ""
        lacking = self._node.filling()
        if not lacking:
            self._was_filled = True
            return ""
        known = sum(left for left in lacking.values() if left > 0)
        return f"{len(lacking)} tables are being filled, {known} records or more are to be read"


class NodeState:
    """A node as far as it has come: a part that is not there yet has no trouble."""

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def is_up(self) -> bool:
        """Whether its start is done and its stop has not begun."""
        return self._node.ready.is_set()

    @property
    def replaying(self) -> bool:
        """Whether the command topic is not replayed yet."""
        return self._node.replaying

    def kafka(self) -> str:
        """Return why Kafka does not answer; empty if it does, or nobody has looked yet."""
        loop = getattr(self._node, "health_loop", None)
        return "" if loop is None else loop.kafka

    def leadership(self) -> str:
        """Return why the server has lost, or is losing, its leadership; empty if neither."""
        leadership = getattr(self._node, "leadership", None)
        return self._node.lost or ("" if leadership is None else leadership.problem)

    def filling(self) -> Mapping[str, int]:
        """Return the tables that are being filled, with the offsets that they lack (-1: many)."""
        return self._node.views.filling()
