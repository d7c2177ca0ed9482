from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.core.records import QueryId
from ksql.core.types.format import Format
from ksql.core.types.model import BIGINT
from ksql.core.types.schema import Column, Role, Schema
from ksql.sql.catalog.catalog import Catalog, UnknownSource
from ksql.sql.catalog.model import DataSource, PersistentQuery

SCHEMA = Schema((Column("K", BIGINT, Role.KEY), Column("V", BIGINT)))


def source(name, **more):
    return DataSource(
        name=name,
        kind="STREAM",
        topic=name,
        schema=SCHEMA,
        key_format=Format("KAFKA"),
        value_format=Format("JSON"),
        partitions=1,
        **more,
    )


def query(name, sink, *sources):
    return PersistentQuery(
        id=name, kind="CSAS", sink=sink, sources=sources, statement="", plan="", offset=0
    )


def test_readers_of_a_topic_under_any_name():
    catalog = Catalog().with_source(source("A")).with_source(replace(source("LOG"), topic="A"))
    catalog = catalog.with_query(query("Q1", "B", "LOG")).with_query(query("Q2", "C", "B"))
    assert [q.id for q in catalog.readers_from("A")] == ["Q1"]
    assert not catalog.readers("A")


def test_a_change_gives_a_new_snapshot_and_leaves_the_old_one():
    empty = Catalog()
    one = empty.with_source(source("A"))
    two = one.with_type("T", BIGINT).with_query(query("Q", "B", "A"))
    assert (dict(empty.sources), dict(empty.types), dict(empty.queries)) == ({}, {}, {})
    assert list(one.sources) == ["A"]
    assert two.without_source("A").without_type("T").without_query("Q") == empty
    assert empty.without_source("A").without_type("T").without_query("Q") == empty


def test_names_are_exact_and_unknown_ones_are_compared():
    catalog = Catalog().with_source(source("ORDERS")).with_source(source("Orders2"))
    assert catalog.source("ORDERS").topic == "ORDERS"
    with pytest.raises(UnknownSource) as caught:
        catalog.source("orders")
    assert caught.value.text() == "`orders` does not exist.\nDid you mean ORDERS?"


def test_readers_and_writers_the_oldest_first():
    catalog = (
        Catalog()
        .with_query(query("CSAS_B_1", "B", "A"))
        .with_query(query("INSERTQUERY_2", "B", "A", "C"))
        .with_query(query("CSAS_D_3", "D", "B"))
    )
    assert [q.id for q in catalog.writers("B")] == ["CSAS_B_1", "INSERTQUERY_2"]
    assert [q.id for q in catalog.readers("A")] == ["CSAS_B_1", "INSERTQUERY_2"]
    assert [q.id for q in catalog.readers("D")] == []
    replaced = catalog.with_query(query("CSAS_B_1", "B", "Z"))
    assert list(replaced.queries) == list(catalog.queries)
    assert replaced.queries[QueryId("CSAS_B_1")].sources == ("Z",)


def test_query_ids_ignore_case():
    catalog = Catalog().with_query(query("CSAS_B_1", "B", "A"))
    stored_query = catalog.query("csas_b_1")
    assert stored_query is not None
    assert stored_query.id == "CSAS_B_1"
    assert catalog.query("CSAS_B_2") is None


def test_sources_created_from_a_source():
    catalog = Catalog().with_source(source("A")).with_source(source("B", derived_from=("A",)))
    assert catalog.derived("A") == ("B",)
    assert catalog.derived("B") == ()
