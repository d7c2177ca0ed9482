"""The foundation that every layer may use, and nothing more."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.core import codegen, ident, process_tuning, token, versioned_json
    from ksql.core.codegen import *
    from ksql.core.config import *
    from ksql.core.error_table import *
    from ksql.core.errors import *
    from ksql.core.files import *
    from ksql.core.ident import *
    from ksql.core.log_context import (
        TRACEPARENT,
        Trace,
        carried,
        log_fields,
        note,
        noting,
        trace_of,
        traced,
        traceparent,
    )
    from ksql.core.process_tuning import *
    from ksql.core.query_version import *
    from ksql.core.records import *
    from ksql.core.secrets import *
    from ksql.core.spans import *
    from ksql.core.structs import *
    from ksql.core.tallies import *
    from ksql.core.timing import *
    from ksql.core.token import *
    from ksql.core.versioned_json import *
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "codegen": "Draft gathered indent tuple_of",
            "config": (
                "FUNCTION_PREFIX InvalidProperty PLAN_PROPERTIES PROPERTIES "
                "STREAMS_PREFIX Settings canonical check_server comma_list "
                "is_exactly_once near_property without_effect"
            ),
            "error_table": (
                "AMBIGUOUS_BODY APPLIED_OFFSET_DAMAGED BEING_REPLACED "
                "BROKER_INSIDE CHECKPOINT_UNUSABLE COMPRESSED_BODY CUT_OVER_REFUSED "
                "FOREIGN_STATE FORMER_NOT_KEPT FORMER_READS_NOTHING INTERNAL_TOPIC LAUNCH_ENDED "
                "LEASE_UNWRITABLE CUT_OVER_CANCELLED MESSAGE_NOT_FOUND "
                "MISSING_OFFSETS NEWER_BACKUP NOT_ORDERABLE NO_BATCH NO_BROKER "
                "NO_HISTORY NO_QUERIES NO_REBUILD NO_ROOM NO_WHOLE_DIGITS "
                "NUMERIC_OVERFLOW OTHER_FORMER OTHER_ID OTHER_SERVICE "
                "OTHER_SINK QUERY_START_FAILED REBUILD_UNDER_WAY REPLACED_MEANWHILE "
                "REGISTRY_PORT_IN_USE REPLACE_DISABLED ROLLBACK_REFUSED ROWS_LOST "
                "SERVER_RUNS START_CANCELLED STATE_CALL_FAILED STATE_METADATA_UNKNOWN "
                "STATE_NOT_COPIED STATE_THERE STORE_BUSY SWITCH_CANCELLED TABLE_WRITER "
                "TARGET_THERE TOO_MANY_PUSH_QUERIES TOO_MANY_WINDOWS "
                "TOPIC_THERE UNKNOWN_JOIN_STATE UNKNOWN_KIND UNKNOWN_PAGE "
                "UNKNOWN_WRITER WRAP_NEEDS_ONE_COLUMN"
            ),
            "errors": (
                "AssertionFailed CommandTimeout KsqlError NotFound NotReady "
                "NotSupportedYet PREPARING ParseError QueryFailed QueryOnWrongEndpoint "
                "RESOLVING RegistryMissing ServerError Span StartError StatementError "
                "TooManyRequests UnknownName excerpt"
            ),
            "files": "Trash TrashEntry WatchedFiles directory sync_folder write_atomically",
            "ident": (
                "Kind RESERVED did_you_mean listed near quote quote_always seeing similar "
                "string_literal visible"
            ),
            "process_tuning": "no_cycle_search raise_limit freeze_objects",
            "query_version": "FIRST QueryVersion transactional_id",
            "records": (
                "BadRecord Headers LATEST_MS Millis Offset OutRecord QueryId RawRecord "
                "Row Written application_id persistent_query_id"
            ),
            "secrets": "HIDDEN LEDGER_PASSWORD hidden_if_secret is_secret password without_secrets",
            "spans": "Attributes OpenSpan Tracer begun_span finished_root finished_span trace_with "
            "within_span",
            "structs": "Form Structs form",
            "log_context": (
                "TRACEPARENT Trace carried log_fields note noting trace_of traced traceparent"
            ),
            "tallies": "Counts Durations Histogram LONG_S SHORT_S Tally",
            "timing": (
                "GrowingRest LogThrottle PerHour PerSecond StartupTimeout boot_s cpu_seconds "
                "resident_bytes steady_ms"
            ),
            "token": "FILE HEADER PartitionId ServerSecret Token TokenScope merged requested_token",
            "versioned_json": "BeforeFormatZero NewerVersion",
        },
    )
