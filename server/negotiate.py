"""Which of an endpoint's media types a client wants."""

from __future__ import annotations

from starlette.exceptions import HTTPException


def negotiate(accept: str | None, offered: tuple[str, ...]) -> str:
    """Return the offered type that the Accept header likes best; the first one offered breaks ties.

    Raises: HTTPException 406 when it likes none.
    """
    if accept is None or not accept.strip():
        return offered[0]
    wishes = [wish for part in accept.split(",") if (wish := _wish(part)) is not None]
    scored = [(_quality(kind, wishes), -index) for index, kind in enumerate(offered)]
    quality, index = max(scored)
    if quality <= 0:
        raise HTTPException(406)
    return offered[-index]


def _wish(part: str) -> tuple[str, float] | None:
    kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                return None
    return (kind, quality) if "/" in kind else None


def _quality(kind: str, wishes: list[tuple[str, float]]) -> float:
    """Return the quality that the most specific matching wish gives to a media type."""
    family = kind.partition("/")[0] + "/*"
    for pattern in (kind, family, "*/*"):
        qualities = [quality for wish, quality in wishes if wish == pattern]
        if qualities:
            return max(qualities)
    return 0.0
