from __future__ import annotations

import io
import json
from decimal import Decimal

import fastavro
import pytest

from server.demo.shop import data


@pytest.mark.parametrize("customer", [None, "c00001", "Zoë"])
@pytest.mark.parametrize("cents", [0, 1, 127, 128, 255, 99_995, 9_999_999_999, -129])
def test_another_reader_reads_orders(customer, cents):
    written = data.order(7, customer, "p1", 300, cents)
    assert written[:5] == b"\0\0\0\0\7"
    schema = fastavro.parse_schema(json.loads(data.SCHEMA))
    assert fastavro.schemaless_reader(io.BytesIO(written[5:]), schema, None) == {
        "customer_id": customer,
        "product_id": "p1",
        "quantity": 300,
        "amount": Decimal(cents) / 100,
    }


@pytest.mark.parametrize(
    ("value", "encoded"), [(0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (64, "8001")]
)
def test_numbers_of_the_specification(value, encoded):
    assert data.number(value).hex() == encoded
