from __future__ import annotations

import dataclasses
import json

import pytest

from ksql.control.engine.ports import CommandStatus
from ksql.control.statements import entities
from ksql.control.statements.entities import Entity, FieldInfo
from ksql.control.statements.upgradereport import UpgradeReport
from ksql.core.types import model
from ksql.core.types.schema import Column, Role
from ksql.sql.upgrade.verdict import Difference, Guarantee, Verdict
from server.wire import (
    MOST_NAMES,
    BadRequest,
    KsqlRequest,
    camel,
    parse_body,
    schema_info,
    to_wire,
)

ENTITIES = [
    kind
    for kind in vars(entities).values()
    if isinstance(kind, type) and issubclass(kind, Entity) and kind is not Entity
]


def test_each_entity_has_a_type_of_its_own() -> None:
    assert len({kind.type_name for kind in ENTITIES}) == len(ENTITIES)
    assert all(dataclasses.is_dataclass(kind) for kind in ENTITIES)


def test_names_become_camel_case() -> None:
    assert camel("ksql_host_query_status") == "ksqlHostQueryStatus"
    assert camel("id") == "id"


def test_types_are_described() -> None:
    struct = model.Struct((model.Field("A", model.Array(model.BIGINT)),))
    bigint = {"type": "BIGINT", "fields": None, "memberSchema": None}
    assert schema_info(model.BIGINT) == bigint
    assert schema_info(struct) == {
        "type": "STRUCT",
        "fields": [
            {"name": "A", "schema": {"type": "ARRAY", "fields": None, "memberSchema": bigint}}
        ],
        "memberSchema": None,
    }
    assert schema_info(model.Map(model.STRING, model.BIGINT))["memberSchema"] == bigint
    assert schema_info(model.Decimal(4, 2))["parameters"] == {"precision": 4, "scale": 2}


def test_a_fields_kind_is_absent_for_values() -> None:
    plain = FieldInfo.of(Column("V", model.STRING))
    key = FieldInfo.of(Column("K", model.STRING, Role.KEY))
    header = FieldInfo.of(Column("H", model.BYTES, Role.HEADERS, "h"))
    assert set(dataclasses.asdict(plain)) > {"type"}
    assert "type" not in as_dict(plain)
    assert as_dict(key)["type"] == "KEY"
    assert (as_dict(header)["type"], as_dict(header)["headerKey"]) == ("HEADER", "h")


def test_keys_of_mappings_are_verbatim() -> None:
    types = entities.TypeList(statement_text="SHOW TYPES;", types={"MY_TYPE": model.STRING})
    assert as_dict(types) == {
        "@type": "type_list",
        "statementText": "SHOW TYPES;",
        "warnings": [],
        "types": {"MY_TYPE": {"type": "STRING", "fields": None, "memberSchema": None}},
    }


def test_an_upgrade_report_is_left_out_unless_there_is_one() -> None:
    status = entities.CurrentStatus(
        statement_text="x",
        command_id="stream/`S`/create",
        command_status=CommandStatus("SUCCESS", "done"),
    )
    assert "upgrade" not in as_dict(status)
    verdict = Verdict(
        classes=("data selection", "source modifying"),
        traits=("simple",),
        guarantees=(Guarantee("live", False, "stop, then start"),),
        changes=(
            Difference("data selection", "WHERE", "filter changed", True),
            Difference("source modifying", "FROM", "A -> B", False),
        ),
    )
    report = UpgradeReport.of(verdict, "CSAS_S_1")
    body = as_dict(dataclasses.replace(status, upgrade=report))["upgrade"]
    assert isinstance(body, dict)
    assert body["accepted"] is False
    assert body["changes"][1] == {
        "kind": "source modifying",
        "clause": "FROM",
        "text": "A -> B",
        "allowed": False,
    }
    assert body["reasons"] == ["FROM: A -> B (source modifying)"]
    assert "switch" not in body


def as_dict(value: object) -> dict[str, object]:
    body = to_wire(value)
    assert isinstance(body, dict)
    return body


@pytest.mark.parametrize("field", ["streamsProperties", "sessionVariables", "requestProperties"])
def test_names_of_a_request_are_bounded(field):
    """The event loop took four seconds for 600,000 names, and answered nobody meanwhile."""
    names = {f"k{number}": 1 for number in range(MOST_NAMES + 1)}
    with pytest.raises(BadRequest) as caught:
        parse_body(json.dumps({"ksql": "SHOW TOPICS;", field: names}).encode(), KsqlRequest)
    assert caught.value.message == (
        f"the field '{field}' of the request body is wrong: has more than 10000 names"
    )
    names.popitem()
    body = json.dumps({"ksql": "SHOW TOPICS;", field: names}).encode()
    assert parse_body(body, KsqlRequest).ksql == "SHOW TOPICS;"
