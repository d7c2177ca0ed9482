"""Keeps the service's files to its user: the umask, and a state directory that is closed."""

from __future__ import annotations

import contextlib
import logging
import os
from typing import TYPE_CHECKING, Final

from ksql.core import StartError, directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ksql.core import Settings

UMASK: Final = "ksql.state.umask"
_ALL: Final = 0o777
log = logging.getLogger(__name__)


class BadUmask(StartError):
    """A mask of permissions that is no octal number."""

    def __init__(self, given: str) -> None:
        super().__init__(
            f"{UMASK}={given} is no mask of permissions",
            hint="Write three octal digits: 077 leaves all to the service's user, 027 lets its "
            "group read.",
        )


@contextlib.contextmanager
def own_files(settings: Settings) -> Iterator[None]:
    """Have all files of this process, and of those that it starts, be its user's own.

    A state directory that others may look into is closed, if it is this user's.
    Raises: BadUmask.
    """
    mask = _mask(settings.text(UMASK))
    before = os.umask(mask)
    try:
        _close(directory(settings), mask)
        yield
    finally:
        os.umask(before)


def _mask(text: str) -> int:
    if len(text) != 3 or not set(text) <= set("01234567"):
        raise BadUmask(text)
    return int(text, 8)


def _close(folder: Path, mask: int) -> None:
    try:
        status = folder.stat()
    except FileNotFoundError:
        return
    if status.st_uid != os.geteuid():
        extra = {"directory": str(folder), "owner": status.st_uid, "user": os.geteuid()}
        log.warning("state_directory_of_another_user", extra=extra)
    elif status.st_mode & mask:
        folder.chmod(status.st_mode & _ALL & ~mask)
        extra = {"directory": str(folder), "was": f"{status.st_mode & _ALL:03o}"}
        log.warning("state_directory_closed", extra=extra)
