from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest

from ksql.core.types.format import (
    CAPABILITIES,
    Format,
    FormatName,
    UnknownFormat,
    as_written,
    capabilities,
)


def test_each_name_has_a_row():
    assert tuple(CAPABILITIES) == get_args(FormatName)


def test_names_are_in_any_case_and_unknown_ones_have_a_hint():
    assert capabilities("json").name == "JSON"
    with pytest.raises(UnknownFormat, match="Unknown format: JASON") as error:
        capabilities("JASON")
    assert error.value.hint == "Did you mean JSON?"


def test_every_property_belongs_to_some_format():
    known = frozenset().union(*(each.properties for each in CAPABILITIES.values()))
    stated = Format(
        "AVRO", "|", schema_id=0, schema_full_name="a", nullable_representation="WRAPPER"
    )
    assert set(stated.stated) == known
    assert len(fields(Format)) == len(known) + 2  # name and wrap
    assert Format("AVRO").stated == ()


@pytest.mark.parametrize("name", CAPABILITIES)
def test_a_wrapping_that_holds_anyway_is_none(name):
    anyway = CAPABILITIES[name].wraps_by_default
    assert as_written(Format(name, wrap=anyway)) == Format(name)
    assert as_written(Format(name)) == Format(name)
    assert as_written(Format(name, wrap=not anyway)) == Format(name, wrap=not anyway)
