"""Statements: one handler for each kind, with its effect and its answer."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.control.statements import entities, execute, reports
    from ksql.control.statements.bounds import STATEMENTS
    from ksql.control.statements.dry_run import DryRun
    from ksql.control.statements.entities import *
    from ksql.control.statements.execute import *
    from ksql.control.statements.insert_values import check_count
    from ksql.control.statements.inserts_stream import *
    from ksql.control.statements.masking import masked
    from ksql.control.statements.queriesfile import *
    from ksql.control.statements.queryhistory import *
    from ksql.control.statements.reports import *
    from ksql.control.statements.services import *
    from ksql.control.statements.teardown import end_cluster
    from ksql.control.statements.upgradereport import *
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "bounds": "STATEMENTS",
            "dry_run": "DryRun",
            "entities": (
                "Entity FieldInfo OMIT_NONE TopicPartition UpgradeDescriptionEntity Upgrades"
            ),
            "execute": ("HANDLERS Health RequestFailed ServerInfo UnknownField run session single"),
            "insert_values": "check_count",
            "inserts_stream": "RowWriter row_writer",
            "masking": "masked",
            "queriesfile": "FILE StatementsOfCatalog left_to_run",
            "queryhistory": "QueryHistory QuerySample",
            "reports": "HostReport PATH QUERY QueryDetails",
            "services": (
                "CommandRate Delivery Monitor Offsets QueryHealth Records Request OpenPush "
                "Services StageState UpgradeReports"
            ),
            "teardown": "end_cluster",
            "upgradereport": "SwitchPoint UpgradeDescription UpgradeDifference UpgradeReport",
        },
    )
