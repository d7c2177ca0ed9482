"""The names of a version of a query: those of the first are the query's, no two have one alike."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.query_version import QueryVersion, transactional_id
from ksql.core.records import QueryId, persistent_query_id

FIRST = QueryVersion(QueryId("CTAS_T_4"))
LATER = QueryVersion(QueryId("CTAS_T_4"), 17)
OTHER = QueryVersion(QueryId("CTAS_T_41"))
QUERY = "_confluent-ksql-default_query_CTAS_T_4"


def test_the_first_version_has_the_names_of_its_query():
    assert FIRST.name == "CTAS_T_4"
    assert FIRST.checkpoint(Path("queries")) == Path("queries/CTAS_T_4")
    assert FIRST.spark_name("a.") == "a.CTAS_T_4"
    assert FIRST.application_id("default_", "f00d") == f"{QUERY}-f00d"


def test_a_later_version_has_names_of_its_own():
    assert LATER.name == "CTAS_T_4.v17"
    assert LATER.checkpoint(Path("queries")) == Path("queries/CTAS_T_4.v17")
    assert LATER.spark_name("a.") == "a.CTAS_T_4.v17"
    assert LATER.application_id("default_", "f00d") == f"{QUERY}-v17-f00d"


def test_without_a_known_incarnation_the_name_in_kafka_is_the_beginning_of_all():
    assert FIRST.application_id("default_", "") == QUERY
    assert LATER.application_id("default_", "") == f"{QUERY}-v17"


@pytest.mark.parametrize(("one", "another"), list(permutations([FIRST, LATER, OTHER], 2)))
def test_groups_are_those_of_one_incarnation_of_one_version(one, another):
    groups = one.groups("default_", "f00d")

    def own(version, incarnation, task):
        name = version.application_id("default_", incarnation)
        return groups.fullmatch(transactional_id(name, task)) is not None

    assert own(one, "f00d", "0-3")
    assert own(one, "f00d", "stage-12")
    assert not own(one, "beef", "0-3")
    assert not own(another, "f00d", "0-3")
    assert not own(one, "f00d2", "0-3")


@given(
    st.sampled_from(["CSAS", "CTAS", "CST", "INSERTQUERY"]),
    st.text(st.sampled_from("AV_.-017"), max_size=9),
    st.integers(0, 99),
    st.integers(1, 99),
)
def test_no_query_has_an_id_like_the_name_of_a_later_version(kind, sink, number, version):
    query_id = persistent_query_id(kind, sink, number)
    name = QueryVersion(query_id, version).name
    assert QueryVersion(query_id).name == query_id
    assert name.rpartition(".v") == (query_id, ".v", str(version))
    # ids end with their number behind a low line, or were chosen of letters, digits and such lines
    assert not name.rpartition("_")[2].isdecimal()
