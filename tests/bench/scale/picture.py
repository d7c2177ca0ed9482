"""A curve as an SVG picture: CPU of a record over what grows, which is drawn by its logarithm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 470, 24, 310
_COLOURS = ("#1f4e9c", "#c2410c", "#15803d", "#7e22ce", "#525252")
_STEPS = 5
_UNITS = ((1_000_000, "M"), (1_000, "k"))

Line = Sequence[tuple[float, float]]
Scale = Callable[[float], float]


def drawn(title: str, across: str, up: str, lines: Mapping[str, Line], *, log_up: bool) -> str:
    """Return the picture of named lines of points (across, up), all greater than zero.

    ``log_up``: the heights, too, are drawn by their logarithm.
    """
    places = sorted({x for line in lines.values() for x, _ in line})
    heights = [y for line in lines.values() for _, y in line]
    ticks = _powers(min(heights), max(heights)) if log_up else _steps(max(heights))
    to_x = _logarithmic(places[0], places[-1], _LEFT, _RIGHT)
    to_y = (_logarithmic if log_up else _linear)(ticks[0], ticks[-1], _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        f' font-family="sans-serif" font-size="12" role="img"><title>{escape(title)}</title>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for tick in ticks:
        y = to_y(tick)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_RIGHT}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 8, y + 4, _short(tick), "end"))
    for place in places:
        x = to_x(place)
        parts.append(f'<path d="M{x:.1f} {_BOTTOM}v5" stroke="#444"/>')
        parts.append(_text(x, _BOTTOM + 20, _short(place), "middle"))
    parts.append(_text((_LEFT + _RIGHT) / 2, _BOTTOM + 42, across, "middle"))
    parts.append(_text(_LEFT, _TOP - 10, up, "start"))
    for number, (name, line) in enumerate(lines.items()):
        parts += _line(name, number, [(to_x(x), to_y(y)) for x, y in line])
    return "\n".join([*parts, "</svg>", ""])


def _line(name: str, number: int, points: Line) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    key_y = _TOP + 10 + 20 * number
    parts.append(
        f'<rect x="{_RIGHT + 16}" y="{key_y - 8}" width="10" height="10" fill="{colour}"/>'
    )
    parts.append(_text(_RIGHT + 32, key_y + 1, name, "start"))
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="#222">{escape(text)}</text>'


def _linear(low: float, high: float, start: float, end: float) -> Scale:
    if high == low:
        return lambda _value: (start + end) / 2
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    scale = _linear(math.log(low), math.log(high), start, end)
    return lambda value: scale(math.log(value))


def _steps(highest: float) -> list[float]:
    """Return round heights from zero to the highest at least."""
    power = 10.0 ** math.floor(math.log10(highest / _STEPS))
    step = next(power * n for n in (1, 2, 5, 10) if power * n * _STEPS >= highest)
    return [step * number for number in range(math.ceil(highest / step) + 1)]


def _powers(lowest: float, highest: float) -> list[float]:
    """Return the powers of ten around the heights."""
    first, last = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def _short(value: float) -> str:
    for size, letter in _UNITS:
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
