"""Values as a cell shows them."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), " ")
_IN_TEXTS = {code: blank for code, blank in _CONTROLS.items() if chr(code) not in "\n\t"}


def cell_text(value: object) -> str:
    """Return a JSON value in one line: ``null``, ``true``, ``[1, 2]``, ``{A=1, B=x}``."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "{" + ", ".join(f"{key}={cell_text(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(cell_text, value)) + "]"
        case _:
            return str(value).translate(_CONTROLS)


def clean(text: str) -> str:
    """Return the text without control sequences of terminals; line breaks and tabs stay."""
    return text.translate(_IN_TEXTS)


def wrapped(text: str, width: int) -> list[str]:
    """Return the text in pieces that fill ``width`` columns each; at least one."""
    if cell_len(text) <= width:
        return [set_cell_size(text, width)]
    pieces, piece, used = [], "", 0
    for letter in text:
        size = cell_len(letter)
        if used + size > width and piece:
            pieces.append(set_cell_size(piece, width))
            piece, used = "", 0
        piece += letter
        used += size
    return [*pieces, set_cell_size(piece, width)]


def cut(text: str, width: int) -> str:
    """Return the text in exactly ``width`` columns; what does not fit becomes three dots."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    if width <= 3:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 3) + "..."


def type_text(schema: dict[str, object]) -> str:
    """Return a SchemaInfo as SQL: ``DECIMAL(4, 2)``, ``ARRAY<STRING>``."""
    match schema:
        case {"type": "DECIMAL", "parameters": {"precision": precision, "scale": scale}}:
            return f"DECIMAL({precision}, {scale})"
        case {"type": "ARRAY", "memberSchema": dict(member)}:
            return f"ARRAY<{type_text(member)}>"
        case {"type": "MAP", "memberSchema": dict(member)}:
            return f"MAP<STRING, {type_text(member)}>"
        case {"type": "STRUCT", "fields": list(fields)}:
            parts = (f"{field['name']} {type_text(field['schema'])}" for field in fields)
            return f"STRUCT<{', '.join(parts)}>"
        case _:
            return str(schema.get("type", ""))
