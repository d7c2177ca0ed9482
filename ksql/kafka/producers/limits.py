"""Checks whether a topic's brokers would refuse a record, by the topic's configuration.

A broker refuses whole batches: one record that it does not want costs all that lie in the same
batch, also other users'. So neither queries nor INSERT VALUES send such records.

Source: Kafka's LogValidator; KIP-937 for the two limits of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.core import OutRecord

_AHEAD: Final = "message.timestamp.after.max.ms"
_BEHIND: Final = "message.timestamp.before.max.ms"
_BOTH: Final = "message.timestamp.difference.max.ms"  # before Kafka 3.6; later if neither is set
_TOPIC_BYTES: Final = 1_048_588  # Kafka's default for a topic
BATCH_BYTES: Final = 1_000_000
"""The client's default for the largest batch, and for a record."""
_FRAME_BYTES: Final = 512  # what a batch needs besides its records
_HEADER_BYTES: Final = 61  # how a batch begins
_LEAST_BYTES: Final = 1000  # the least that librdkafka takes for a record
_NO_LIMIT_MS: Final = 9_000_000_000_000_000  # no time that a query can read is so far away


class Refusal(NamedTuple):
    """Why a record is refused, and what helps."""

    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class TopicLimits:
    """The limits of a topic.

    Attributes:
        batch_bytes: The largest batch; None: not known.
        ahead_ms: How far a record's time may lie ahead of the clock; None: however far.
        behind_ms: How far it may lie behind the clock.
        keyed: Whether each record needs a key.
    """

    batch_bytes: int | None = None
    ahead_ms: int | None = None
    behind_ms: int | None = None
    keyed: bool = False

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> TopicLimits:
        """Return the limits that a topic's configuration sets."""
        size = configs.get("max.message.bytes")
        own_times = configs.get("message.timestamp.type") == "LogAppendTime"
        return cls(
            batch_bytes=None if size is None else int(size),
            ahead_ms=None if own_times else _limit(configs, _AHEAD),
            behind_ms=None if own_times else _limit(configs, _BEHIND),
            keyed="compact" in configs.get("cleanup.policy", ""),
        )

    @property
    def timed(self) -> bool:
        """Whether it refuses any times."""
        return self.ahead_ms is not None or self.behind_ms is not None

    def refusal(self, key: bytes | None, time_ms: int, now_ms: int) -> Refusal | None:
        """Return why it does not take a record; its size is not looked at."""
        if self.keyed and key is None:
            return Refusal(
                "the record has no key, and the topic's cleanup.policy is compact",
                "Give the records a key, or the topic another cleanup.policy",
            )
        ahead_ms = time_ms - now_ms
        if self.ahead_ms is not None and ahead_ms > self.ahead_ms:
            return _out_of_time(time_ms, f"{ahead_ms} ms ahead of", _AHEAD)
        if self.behind_ms is not None and -ahead_ms > self.behind_ms:
            return _out_of_time(time_ms, f"{-ahead_ms} ms behind", _BEHIND)
        return None

    def accepted(
        self,
        records: list[OutRecord],
        now_ms: int,
        refused: Callable[[str, str], None],
    ) -> list[OutRecord]:
        """Return those that it takes; call ``refused`` for the rest, with reason and remedy."""
        suspect = self.keyed and any(record[0] is None for record in records)
        if self.timed and records:
            times = [record[2] for record in records]
            suspect |= any(self.refusal(b"", t, now_ms) for t in (min(times), max(times)))
        if not suspect:
            return records
        taken: list[OutRecord] = []
        for record in records:
            refusal = self.refusal(record[0], record[2], now_ms)
            if refusal is None:
                taken.append(record)
            else:
                refused(*refusal)
        return taken


NO_LIMITS: Final = TopicLimits()


def fitting(limit: int | None, *, surely: bool = False) -> dict[str, str]:
    """Return client settings that fit a topic's ``max.message.bytes``.

    The broker measures whole batches and refuses a large one with all that is in it. So they must
    be small enough for any but a single record that is itself too large. The client measures
    records without their batch, so that it lets some through which the broker refuses. With
    ``surely`` it rather refuses some that would just have fitted.
    """
    if limit in (None, _TOPIC_BYTES):
        return {}
    batch = max(1, min(BATCH_BYTES, limit - _FRAME_BYTES))
    most = limit - _HEADER_BYTES if surely else limit
    return {"batch.size": str(batch), "message.max.bytes": str(max(_LEAST_BYTES, most))}


def _limit(configs: Mapping[str, str], name: str) -> int | None:
    for setting in (name, _BOTH):
        limit = int(configs.get(setting, _NO_LIMIT_MS))
        if limit < _NO_LIMIT_MS:
            return limit
    return None


def _out_of_time(time_ms: int, where: str, setting: str) -> Refusal:
    return Refusal(
        f"the record's timestamp {time_ms} is {where} the clock, more than the topic's {setting}",
        f"Raise the topic's {setting}",
    )
