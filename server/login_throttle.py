"""A throttle on guesses of passwords: after some wrong ones a name at an address has to wait.

The wait doubles with each wrong password. It is the client that waits: a request in the meantime
is refused at once, and its password is not looked at. The same name at another address is not
affected. Memory is bounded: the entry that was used longest ago makes room.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ksql.core import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Callable

FREE: Final = 5  # wrong passwords of a name at an address before it has to wait
FREE_OF_ADDRESS: Final = 50  # of all names at an address
FIRST_S: Final = 1.0
LONGEST_S: Final = 60.0
FORGOTTEN_S: Final = 900.0  # after which time without a guess an entry counts no more
MOST: Final = 10_000
_LONGEST_NAME: Final = 64  # bytes: a longer one is kept as its digest
_SITE_BITS: Final = 64  # of IPv6: who has a network of these bits has all addresses in it


class TooManyGuesses(TooManyRequests):
    """A name at an address, or an address, from which too many wrong passwords have come."""

    def __init__(self, wait_s: float) -> None:
        self.wait_s = max(1, math.ceil(wait_s))
        super().__init__(
            "too many wrong passwords have come from this address",
            hint=f"Try again in {self.wait_s} seconds.",
        )


@dataclass(slots=True)
class _Entry:
    wrong: int = 0
    held: int = 0
    last_s: float = 0.0
    until_s: float = 0.0


class _Entries:
    """Wrong passwords by what they are counted for; the oldest one makes room."""

    def __init__(self, free: int) -> None:
        self._free = free
        self._kept: OrderedDict[bytes, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def wait_s(self, key: bytes, now_s: float) -> float:
        entry = self._kept.get(key)
        if entry is None or entry.until_s <= now_s:
            return 0.0
        entry.held += 1
        return entry.until_s - now_s

    def wrong(self, key: bytes, now_s: float) -> int:
        entry = self._kept.pop(key, None)
        if entry is None or now_s - entry.last_s > FORGOTTEN_S:
            entry = _Entry()
        self._kept[key] = entry
        entry.wrong += 1
        entry.last_s = now_s
        beyond = entry.wrong - self._free
        if beyond >= 0:
            entry.until_s = now_s + min(LONGEST_S, FIRST_S * 2 ** min(beyond, 16))
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)
        held, entry.held = entry.held, 0
        return held

    def forget(self, key: bytes) -> None:
        self._kept.pop(key, None)


class LoginThrottle:
    """Which names and addresses have to wait; for any number of threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pairs = _Entries(FREE)
        self._addresses = _Entries(FREE_OF_ADDRESS)
        self._right: OrderedDict[bytes, float] = OrderedDict()
        self._lock = threading.Lock()

    def refusal(self, name: str, address: str) -> TooManyGuesses | None:
        """Return why a password is not looked at; None if it is.

        Who has signed in from an address lately does not wait for other names' guesses there.
        """
        pair, place = _pair(name, address), _place(address)
        with self._lock:
            now_s = self._clock()
            wait_s = self._pairs.wait_s(pair, now_s)
            if now_s - self._right.get(pair, -math.inf) > FORGOTTEN_S:
                wait_s = max(wait_s, self._addresses.wait_s(place, now_s))
        return TooManyGuesses(wait_s) if wait_s else None

    def wrong(self, name: str, address: str) -> int:
        """Count a wrong password; return how many were not looked at since the last one."""
        pair, place = _pair(name, address), _place(address)
        with self._lock:
            now_s = self._clock()
            of_pair = self._pairs.wrong(pair, now_s)
            return of_pair + self._addresses.wrong(place, now_s)

    def right(self, name: str, address: str) -> None:
        """Take note of a right one; those of other names at the address count on."""
        pair = _pair(name, address)
        with self._lock:
            self._pairs.forget(pair)
            self._right[pair] = self._clock()
            self._right.move_to_end(pair)
            while len(self._right) > MOST:
                self._right.popitem(last=False)

    @property
    def size(self) -> int:
        """How many entries are kept."""
        with self._lock:
            return len(self._pairs) + len(self._addresses) + len(self._right)


@lru_cache(maxsize=4_096)
def _place(address: str) -> bytes:
    """Return the address, or of IPv6 its network: a client has all the addresses in it."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address.encode()
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return parsed.ipv4_mapped.packed
        return parsed.packed[: _SITE_BITS // 8]
    return parsed.packed


def _pair(name: str, address: str) -> bytes:
    """Return what stands for both, in bounded room however long the name is."""
    text = name.encode(errors="surrogatepass")
    if len(text) <= _LONGEST_NAME:
        return _place(address) + b"\0" + text
    return _place(address) + b"\1" + hashlib.sha256(text).digest()
