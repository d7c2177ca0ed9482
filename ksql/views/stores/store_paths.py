"""The paths of a store and of its copy in a newer format, and how the two change places.

| name | what it is |
|---|---|
| ``0`` | the store of partition 0 |
| ``0.new`` | the copy that is being made |
| ``0.old`` | the store, after the copy was made and before it has taken its place |
| ``0.gone`` | a copy that is being deleted |

Each step is one renaming, so a process that ends anywhere leaves one of a few states, and
``recover`` knows what each of them means. No directory is emptied under a name that is in use.
"""

from __future__ import annotations

from pathlib import Path

from ksql.core import sync_folder
from ksql.views.stores.rocks import destroy


def copy_of(store: Path) -> Path:
    """Return where the copy of a store is made."""
    return _beside(store, "new")


def recover(store: Path) -> None:
    """Finish what a process that ended has begun: a change of places, a deletion.

    A copy whose store is not there belongs to nothing, unless the two were changing places.
    """
    old = _beside(store, "old")
    if not store.exists():
        if old.exists():
            _move(copy_of(store) if copy_of(store).exists() else old, store)
        else:
            discard_copy(store)
    destroy(old)
    destroy(_beside(store, "gone"))


def swap(store: Path) -> None:
    """Put the whole, closed copy of a closed, settled store in its place, and delete the store."""
    _move(store, _beside(store, "old"))
    _move(copy_of(store), store)
    destroy(_beside(store, "old"))


def discard_copy(store: Path) -> None:
    """Delete the closed copy of a store; one that is not there is fine."""
    gone = _beside(store, "gone")
    destroy(gone)
    if copy_of(store).exists():
        _move(copy_of(store), gone)
        destroy(gone)


def discard(store: Path) -> None:
    """Delete a closed store and its unfinished copies; one that is not there is fine.

    Whatever a process that ends in between leaves is a whole store, or none.
    """
    gone = _beside(store, "gone")
    destroy(gone)
    for directory in (copy_of(store), _beside(store, "old"), store):
        if directory.exists():
            _move(directory, gone)
            destroy(gone)


def places(directory: Path) -> set[int]:
    """Return the partitions of which a table's directory holds anything."""
    if not directory.is_dir():
        return set()
    numbers = (entry.name.partition(".")[0] for entry in directory.iterdir())
    return {int(number) for number in numbers if number.isdecimal()}


def _beside(store: Path, word: str) -> Path:
    return store.with_name(f"{store.name}.{word}")


def _move(old: Path, new: Path) -> None:
    old.rename(new)
    sync_folder(new.parent)
