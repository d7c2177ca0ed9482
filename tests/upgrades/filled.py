"""The model's backfill: kept aggregates keep their state, added ones come from the past records.

Source: docs/upgrades.md#backfills.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.upgrades.model import Model, Open
from tests.upgrades.spec import Fold, Query


def filled(kept: Model, built: Model) -> Model:
    """The new query's model after the cut-over.

    ``kept`` is that of the query which ran, ``built`` that of the new one over what it has read.
    """
    query, folds = built.query, kept.query.folds & built.query.folds
    model = Model(query, built.kept, built.code, built.made_with, result={**kept.result})
    model.time_s = max(kept.time_s, built.time_s)
    model.latest_end_s = max(kept.latest_end_s, built.latest_end_s)
    for group in kept.groups | built.groups:
        parts = [
            [each for each in version.groups.get(group, []) if not _is_forgotten(model, each)]
            for version in (kept, built)
        ]
        model.groups[group] = [
            _window(_joined(one), _joined(other), folds)
            for one, other in _together(query, parts[0], parts[1])
        ]
        for window in parts[0]:
            model.result.pop((group, window.start, window.end), None)
        for window in model.groups[group]:
            model.give(group, window)
    return model


def _is_forgotten(model: Model, window: Open) -> bool:
    """Whether a window is so old that its state is deleted, with all of a stretch of time."""
    query = model.query
    if not query.window_s:
        return False
    if query.session:
        stretch_s = max(16 * query.window_s, query.retention_s // 128)
        time_s, at_s = model.latest_end_s, window.end
    else:
        stretch_s = max(60, query.retention_s // 2)
        time_s, at_s = model.time_s, window.start
    return (at_s // stretch_s + 1) * stretch_s <= time_s - query.retention_s


def _together(
    query: Query, kept: list[Open], built: list[Open]
) -> Iterable[tuple[list[Open], list[Open]]]:
    """The windows of both versions that are one."""
    left = [*((0, each) for each in kept), *((1, each) for each in built)]
    while left:
        together = [left.pop(0)]
        for one in together:  # it grows meanwhile
            met = [other for other in left if _are_one(one, other, query, (kept, built))]
            left = [other for other in left if other not in met]
            together += met
        ours, theirs = ([each for side, each in together if side == which] for which in (0, 1))
        yield ours, theirs


def _are_one(
    one: tuple[int, Open],
    other: tuple[int, Open],
    query: Query,
    sides: tuple[list[Open], list[Open]],
) -> bool:
    """Whether windows are one: of sessions those that are near, unless a version knows both."""
    (side, a), (other_side, b) = one, other
    if not query.session or (a.start, a.end) == (b.start, b.end):
        return a.start == b.start
    knows_both = any(
        any((each.start, each.end) == (x.start, x.end) for each in sides[which])
        for x, which in ((a, other_side), (b, side))
    )
    near = a.start <= b.end + query.window_s and b.start <= a.end + query.window_s
    return side != other_side and near and not knows_both


def _joined(windows: list[Open]) -> Open | None:
    """The sessions as one, as if a record had joined them."""
    if not windows:
        return None
    whole = Open(min(each.start for each in windows), max(each.end for each in windows))
    for window in sorted(windows, key=lambda each: each.start):
        whole.join(window)
    return whole


def _window(kept: Open | None, built: Open | None, folds: frozenset[Fold]) -> Open:
    """The window with some aggregates of the one that is kept, and all others of the built one."""
    parts = [each for each in (kept, built) if each is not None]
    window = Open(min(each.start for each in parts), max(each.end for each in parts))
    window.time_s = max(each.time_s for each in parts)
    for part, takes in ((kept, True), (built, False)):
        for fold in part.state if part else ():
            if (fold in folds) is takes:
                window.state[fold] = part.state[fold]
    return window
