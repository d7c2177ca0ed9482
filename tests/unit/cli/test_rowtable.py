from __future__ import annotations

import pytest
from rich.cells import cell_len

from server.cli.grid import cell_text, shortened, type_text, wrapped
from server.cli.rowtable import RowBlocks, RowTable, TableStyle, draw_rows

COLUMNS = (("ID", "INTEGER"), ("NAME", "STRING"), ("AT", "TIMESTAMP"))
ROW = (1, "a text that is longer than its column", "2020-09-13T12:26:40.123")


@pytest.mark.parametrize("width", [34, 40, 50])
def test_a_table_that_needs_more_room_fills_the_terminal(width: int) -> None:
    table = RowTable(COLUMNS, TableStyle(width), [ROW])
    lines = [*table.header(), *table.row(ROW), *table.footer()]
    assert {cell_len(line) for line in lines} == {width}


@pytest.mark.parametrize("width", [80, 200, None])
def test_a_table_is_as_wide_as_its_content(width: int | None) -> None:
    table = RowTable(COLUMNS, TableStyle(width), [ROW, (22, None, None)])
    assert table.widths == [2, 37, 23]
    assert table.row(ROW) == [f"| 1  | {ROW[1]} | {ROW[2]} |"]


def test_texts_give_room_before_other_columns_do() -> None:
    table = RowTable(COLUMNS, TableStyle(60), [ROW])
    assert table.widths == [2, 25, 23]
    assert table.row(ROW)[0].endswith("| 2020-09-13T12:26:40.123 |")


def test_long_values_are_wrapped_or_cut() -> None:
    columns, row = (("A", "STRING"), ("B", "STRING")), ("abcdefghij", "abcdefghij")
    table = RowTable(columns, TableStyle(21), [row])
    assert table.row(("abcdefghij", "x")) == ["| abcdefg | x       |", "| hij     |         |"]
    table = RowTable(columns, TableStyle(21, wrap=False), [row])
    assert table.row(("abcdefghij", "x")) == ["| abcd... | x       |"]
    table = RowTable(columns, TableStyle(80, column_width=3))
    assert table.row(("abcd", None)) == ["| abc | nul |", "| d   | l   |"]


def test_a_row_that_needs_more_room_restarts_the_table() -> None:
    table = RowTable((("A", "STRING"), ("B", "BIGINT")), TableStyle(None, grows=True), [("abc", 1)])
    assert table.widths == [8, 8]
    assert table.row(("12345678", 2)) == ["| 12345678 | 2        |"]
    assert table.row(("123456789", 3)) == [
        "+----------+----------+",
        "+--------------+----------+",
        "| A            | B        |",
        "+--------------+----------+",
        "| 123456789    | 3        |",
    ]
    assert table.row(("123456789012", 4)) == ["| 123456789012 | 4        |"]


def test_a_table_that_fills_the_terminal_wraps_instead() -> None:
    table = RowTable((("A", "STRING"),), TableStyle(16, grows=True), [("x" * 12,)])
    assert table.row(("y" * 13,)) == ["| yyyyyyyyyyyy |", "| y            |"]


def test_wide_letters_count_twice() -> None:
    table = RowTable((("A", "STRING"),), TableStyle(9), [("日本航空",)])
    assert table.row(("日本航空",)) == ["| 日本  |", "| 航空  |"]
    assert wrapped("日", 1) == [" "]
    assert shortened("日本航空", 7) == "日本..."


def test_a_narrow_terminal_gets_blocks() -> None:
    many = tuple((f"C{n}", "STRING") for n in range(6))
    assert isinstance(draw_rows(many, TableStyle(46)), RowBlocks)
    assert isinstance(draw_rows(many, TableStyle(46, wrap=False)), RowTable)
    assert isinstance(draw_rows(many, TableStyle(None)), RowTable)
    blocks = draw_rows((("A", "STRING"), ("LONG", "STRING")), TableStyle(8))
    assert blocks.header() == []
    assert blocks.row(("x", None)) == ["-- 1 --", "A     x", "LONG  null"]
    assert blocks.row(("y", 1))[0] == "-- 2 --"


def test_values_in_one_line() -> None:
    value = {"A": 1, "B": [True, None, "x\ny"], "C": {"k": 1.5}}
    assert cell_text(value) == "{A=1, B=[true, null, x y], C={k=1.5}}"
    assert cell_text("\x1b[31mred") == " [31mred"


def test_types_as_sql() -> None:
    decimal = {"type": "DECIMAL", "parameters": {"precision": 4, "scale": 2}}
    text: dict[str, object] = {"type": "STRING", "fields": None, "memberSchema": None}
    struct: dict[str, object] = {
        "type": "STRUCT",
        "fields": [
            {"name": "D", "schema": decimal},
            {"name": "L", "schema": {"type": "ARRAY", "memberSchema": text}},
            {"name": "M", "schema": {"type": "MAP", "memberSchema": text}},
        ],
    }
    assert type_text(struct) == "STRUCT<D DECIMAL(4, 2), L ARRAY<STRING>, M MAP<STRING, STRING>>"
