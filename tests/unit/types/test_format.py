from __future__ import annotations

import pytest

from ksql.formats.table import FORMATS
from ksql.types.format import ALONE, Format, as_written


def test_which_formats_put_nothing_around_a_single_value():
    assert {name for name, info in FORMATS.items() if not info.wraps_by_default} == ALONE


@pytest.mark.parametrize("name", FORMATS)
def test_a_wrapping_that_holds_anyway_is_none(name):
    anyway = FORMATS[name].wraps_by_default
    assert as_written(Format(name, wrap=anyway)) == Format(name)
    assert as_written(Format(name)) == Format(name)
    assert as_written(Format(name, wrap=not anyway)) == Format(name, wrap=not anyway)
