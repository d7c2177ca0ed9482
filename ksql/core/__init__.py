"""The foundation that every layer may use, and nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.core import codegen, format_zero, ident, process_tuning, token, versioned_json
    from ksql.core.codegen import Draft, gathered, indent, tuple_of
    from ksql.core.config import (
        FUNCTION_PREFIX,
        PLAN_PROPERTIES,
        PROPERTIES,
        STREAMS_PREFIX,
        InvalidProperty,
        Settings,
        canonical,
        check_server,
        comma_list,
        is_exactly_once,
        near_property,
        without_effect,
    )
    from ksql.core.error_table import (
        AMBIGUOUS_BODY,
        APPLIED_OFFSET_DAMAGED,
        BEING_REPLACED,
        BROKER_INSIDE,
        CHECKPOINT_UNUSABLE,
        COMPRESSED_BODY,
        FOREIGN_STATE,
        FORMER_READS_NOTHING,
        INTERNAL_TOPIC,
        LEASE_UNWRITABLE,
        MEETING_CANCELLED,
        MESSAGE_NOT_FOUND,
        MISSING_OFFSETS,
        NEWER_BACKUP,
        NO_BATCH,
        NO_BROKER,
        NO_HISTORY,
        NO_QUERIES,
        NO_REBUILD,
        NO_WHOLE_DIGITS,
        NOT_ORDERABLE,
        NUMERIC_OVERFLOW,
        OTHER_FORMER,
        OTHER_ID,
        OTHER_SERVICE,
        OTHER_SINK,
        QUERY_START_FAILED,
        REBUILD_UNDER_WAY,
        REGISTRY_PORT_IN_USE,
        REPLACE_DISABLED,
        ROLLBACK_REFUSED,
        SERVER_RUNS,
        STATE_CALL_FAILED,
        STATE_METADATA_UNKNOWN,
        STATE_THERE,
        STORE_BUSY,
        SWITCH_CANCELLED,
        TABLE_WRITER,
        TARGET_THERE,
        TOO_MANY_PUSH_QUERIES,
        TOO_MANY_WINDOWS,
        TOPIC_THERE,
        UNKNOWN_JOIN_STATE,
        UNKNOWN_KIND,
        UNKNOWN_PAGE,
        UNKNOWN_WRITER,
        WRAP_NEEDS_ONE_COLUMN,
    )
    from ksql.core.errors import (
        PREPARING,
        RESOLVING,
        AssertionFailed,
        CommandTimeout,
        KsqlError,
        NotFound,
        NotReady,
        NotSupportedYet,
        ParseError,
        QueryFailed,
        QueryOnWrongEndpoint,
        RegistryMissing,
        ServerError,
        Span,
        StartError,
        StatementError,
        TooManyRequests,
        UnknownName,
        excerpt,
    )
    from ksql.core.files import Trash, TrashEntry, directory, sync_folder, write_atomically
    from ksql.core.format_zero import BeforeFormatZero
    from ksql.core.ident import (
        RESERVED,
        SURE,
        did_you_mean,
        listed,
        near,
        quote,
        quote_always,
        similar,
        string_literal,
    )
    from ksql.core.process_tuning import no_cycle_search, raise_limit, settle
    from ksql.core.query_version import FIRST, QueryVersion, transactional_id
    from ksql.core.records import (
        LATEST_MS,
        BadRecord,
        Headers,
        Millis,
        Offset,
        OutRecord,
        QueryId,
        RawRecord,
        Row,
        Written,
        application_id,
        persistent_query_id,
    )
    from ksql.core.secrets import HIDDEN, LEDGER_PASSWORD, is_secret, password, without_secrets
    from ksql.core.structs import Form, Structs, form
    from ksql.core.timing import (
        LogThrottle,
        PerHour,
        PerSecond,
        StartupTimeout,
        boot_s,
        cpu_seconds,
        steady_ms,
    )
    from ksql.core.token import (
        FILE,
        HEADER,
        Place,
        ServerSecret,
        Token,
        TokenScope,
        merged,
        requested_token,
    )
    from ksql.core.versioned_json import NewerVersion
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
                "BROKER_INSIDE CHECKPOINT_UNUSABLE COMPRESSED_BODY "
                "FOREIGN_STATE FORMER_READS_NOTHING INTERNAL_TOPIC "
                "LEASE_UNWRITABLE MEETING_CANCELLED MESSAGE_NOT_FOUND "
                "MISSING_OFFSETS NEWER_BACKUP NOT_ORDERABLE NO_BATCH NO_BROKER "
                "NO_HISTORY NO_QUERIES NO_REBUILD NO_WHOLE_DIGITS "
                "NUMERIC_OVERFLOW OTHER_FORMER OTHER_ID OTHER_SERVICE "
                "OTHER_SINK QUERY_START_FAILED REBUILD_UNDER_WAY "
                "REGISTRY_PORT_IN_USE REPLACE_DISABLED ROLLBACK_REFUSED "
                "SERVER_RUNS STATE_CALL_FAILED STATE_METADATA_UNKNOWN "
                "STATE_THERE STORE_BUSY SWITCH_CANCELLED TABLE_WRITER "
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
            "files": "Trash TrashEntry directory sync_folder write_atomically",
            "format_zero": "BeforeFormatZero",
            "ident": (
                "RESERVED SURE did_you_mean listed near quote quote_always similar string_literal"
            ),
            "process_tuning": "no_cycle_search raise_limit settle",
            "query_version": "FIRST QueryVersion transactional_id",
            "records": (
                "BadRecord Headers LATEST_MS Millis Offset OutRecord QueryId RawRecord "
                "Row Written application_id persistent_query_id"
            ),
            "secrets": "HIDDEN LEDGER_PASSWORD is_secret password without_secrets",
            "structs": "Form Structs form",
            "timing": ("LogThrottle PerHour PerSecond StartupTimeout boot_s cpu_seconds steady_ms"),
            "token": "FILE HEADER Place ServerSecret Token TokenScope merged requested_token",
            "versioned_json": "NewerVersion",
        },
    )

__all__ = [
    "AMBIGUOUS_BODY",
    "APPLIED_OFFSET_DAMAGED",
    "BEING_REPLACED",
    "BROKER_INSIDE",
    "CHECKPOINT_UNUSABLE",
    "COMPRESSED_BODY",
    "FILE",
    "FIRST",
    "FOREIGN_STATE",
    "FORMER_READS_NOTHING",
    "FUNCTION_PREFIX",
    "HEADER",
    "HIDDEN",
    "INTERNAL_TOPIC",
    "LATEST_MS",
    "LEASE_UNWRITABLE",
    "LEDGER_PASSWORD",
    "MEETING_CANCELLED",
    "MESSAGE_NOT_FOUND",
    "MISSING_OFFSETS",
    "NEWER_BACKUP",
    "NOT_ORDERABLE",
    "NO_BATCH",
    "NO_BROKER",
    "NO_HISTORY",
    "NO_QUERIES",
    "NO_REBUILD",
    "NO_WHOLE_DIGITS",
    "NUMERIC_OVERFLOW",
    "OTHER_FORMER",
    "OTHER_ID",
    "OTHER_SERVICE",
    "OTHER_SINK",
    "PLAN_PROPERTIES",
    "PREPARING",
    "PROPERTIES",
    "QUERY_START_FAILED",
    "REBUILD_UNDER_WAY",
    "REGISTRY_PORT_IN_USE",
    "REPLACE_DISABLED",
    "RESERVED",
    "RESOLVING",
    "ROLLBACK_REFUSED",
    "SERVER_RUNS",
    "STATE_CALL_FAILED",
    "STATE_METADATA_UNKNOWN",
    "STATE_THERE",
    "STORE_BUSY",
    "STREAMS_PREFIX",
    "SURE",
    "SWITCH_CANCELLED",
    "TABLE_WRITER",
    "TARGET_THERE",
    "TOO_MANY_PUSH_QUERIES",
    "TOO_MANY_WINDOWS",
    "TOPIC_THERE",
    "UNKNOWN_JOIN_STATE",
    "UNKNOWN_KIND",
    "UNKNOWN_PAGE",
    "UNKNOWN_WRITER",
    "WRAP_NEEDS_ONE_COLUMN",
    "AssertionFailed",
    "BadRecord",
    "BeforeFormatZero",
    "CommandTimeout",
    "Draft",
    "Form",
    "Headers",
    "InvalidProperty",
    "KsqlError",
    "LogThrottle",
    "Millis",
    "NewerVersion",
    "NotFound",
    "NotReady",
    "NotSupportedYet",
    "Offset",
    "OutRecord",
    "ParseError",
    "PerHour",
    "PerSecond",
    "Place",
    "QueryFailed",
    "QueryId",
    "QueryOnWrongEndpoint",
    "QueryVersion",
    "RawRecord",
    "RegistryMissing",
    "Row",
    "ServerError",
    "ServerSecret",
    "Settings",
    "Span",
    "StartError",
    "StartupTimeout",
    "StatementError",
    "Structs",
    "Token",
    "TokenScope",
    "TooManyRequests",
    "Trash",
    "TrashEntry",
    "UnknownName",
    "Written",
    "application_id",
    "boot_s",
    "canonical",
    "check_server",
    "codegen",
    "comma_list",
    "cpu_seconds",
    "did_you_mean",
    "directory",
    "excerpt",
    "form",
    "format_zero",
    "gathered",
    "ident",
    "indent",
    "is_exactly_once",
    "is_secret",
    "listed",
    "merged",
    "near",
    "near_property",
    "no_cycle_search",
    "password",
    "persistent_query_id",
    "process_tuning",
    "quote",
    "quote_always",
    "raise_limit",
    "requested_token",
    "settle",
    "similar",
    "steady_ms",
    "string_literal",
    "sync_folder",
    "token",
    "transactional_id",
    "tuple_of",
    "versioned_json",
    "without_effect",
    "without_secrets",
    "write_atomically",
]
