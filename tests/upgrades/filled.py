"""The model's backfill: kept aggregates keep their state, added ones come from the past records.

Source: docs/upgrades.md#backfills.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from tests.upgrades.model import Model, Open
from tests.upgrades.spec import Fold


def filled(kept: Model, built: Model) -> Model:
    """The new query's model after the cut-over.

    ``kept`` is that of the query which ran, ``built`` that of the new one over what it has read.
    """
    query, folds = built.query, kept.query.folds & built.query.folds
    model = Model(query, built.kept, built.code, built.made_with, result={**kept.result})
    model.time_s = max(kept.time_s, built.time_s)
    model.count = max(kept.count, built.count)
    for group in kept.groups | built.groups:
        parts = kept.groups.get(group, []), built.groups.get(group, [])
        model.groups[group] = list(_put_together(*parts, query.window_s * query.session, folds))
        for window in parts[0]:
            model.result.pop((group, window.start, window.end), None)
        for window in model.groups[group]:
            model.give(group, window)
    return model


def _put_together(
    kept: list[Open], built: list[Open], gap_s: int, folds: frozenset[Fold]
) -> Iterable[Open]:
    """The windows that either knows; sessions that are near are one."""
    near: list[tuple[list[Open], list[Open]]] = []
    for window in sorted([*kept, *built], key=lambda each: (each.start, each.end)):
        side = 0 if any(each is window for each in kept) else 1
        if not near or not _are_one(list(chain(*near[-1])), window, gap_s):
            near.append(([], []))
        near[-1][side].append(window)
    for sides in near:
        kept_window, built_window = map(_joined, sides)
        yield _window(kept_window, built_window, folds)


def _are_one(windows: list[Open], other: Open, gap_s: int) -> bool:
    if not gap_s:
        return windows[-1].start == other.start
    return other.start <= max(window.end for window in windows) + gap_s


def _joined(windows: list[Open]) -> Open | None:
    """The sessions as one, as if a record had joined them."""
    if not windows:
        return None
    whole = Open(min(each.start for each in windows), max(each.end for each in windows))
    for window in windows:
        whole.join(window)
    return whole


def _window(kept: Open | None, built: Open | None, folds: frozenset[Fold]) -> Open:
    """The window with some aggregates of the one that is kept, and all others of the built one."""
    parts = [each for each in (kept, built) if each is not None]
    window = Open(min(each.start for each in parts), max(each.end for each in parts))
    for part, takes in ((kept, True), (built, False)):
        for fold in part.state if part else ():
            if (fold in folds) is takes:
                window.state[fold] = part.state[fold]
                window.origins[fold] = part.origins.get(fold, 0)
    return window
