"""Writes families as ``prometheus_client`` does, and keeps what is the same at each scrape.

The library escapes each name and each label of each sample again, which takes most of a scrape's
time. Here it does so once for each series; only values are written again.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client import Metric as Family
    from prometheus_client.samples import Sample

_END: Final = "# EOF\n"
_AS_TEXT: Final[Callable[[float], str]] = floatToGoString
_MOST: Final = 200_000
"""The series that are kept; a writer that has more begins again with none."""


_Key = tuple[str, str, tuple[tuple[str, str], ...]]
"""A series: the form of the text, the sample's name and its labels."""


class _One(Collector):
    """A collector of one family."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> Iterable[Family]:
        return (self._family,)


class Exposition:
    """The writer of one service; for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[_Key, str] = {}

    def write(self, families: Iterable[Family], accept: str) -> tuple[bytes, str]:
        """Return the text of families, and its media type, by a client's header Accept."""
        encode, kind = choose_encoder(accept)
        with self._lock:
            return self._write(families, encode, kind), kind

    def _write(
        self, families: Iterable[Family], encode: Callable[[Collector], bytes], kind: str
    ) -> bytes:
        if len(self._series) > _MOST:
            self._series.clear()
        lines: list[str] = []
        end = ""
        for family in families:
            samples, family.samples = family.samples, []
            head = encode(_One(family)).decode()
            end = _END if head.endswith(_END) else ""
            lines.append(head.removesuffix(_END))
            keys = [(kind, sample.name, tuple(sample.labels.items())) for sample in samples]
            known = self._series
            if new := {k: each for k, each in zip(keys, samples, strict=True) if k not in known}:
                self._learn(encode, family, new)
            lines += [
                f"{known[key]} {_AS_TEXT(sample.value)}\n"
                for key, sample in zip(keys, samples, strict=True)
            ]
        return "".join([*lines, end]).encode()

    def _learn(
        self, encode: Callable[[Collector], bytes], family: Family, new: dict[_Key, Sample]
    ) -> None:
        """Keep the lines of samples that are new, each without its value."""
        family.samples = list(new.values())
        lines = encode(_One(family)).decode().removesuffix(_END).removesuffix("\n").split("\n")
        begins = [line.rsplit(" ", 1)[0] for line in lines[-len(new) :]]
        self._series.update(zip(new, begins, strict=True))
