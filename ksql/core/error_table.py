"""Errors that nobody catches, one row each: code, fact, detail and hint can be read in one place.

Errors that are caught, or whose texts are computed, are classes in the module that raises them.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from ksql.core.errors import KsqlError, QueryFailed, ServerError, StartError, StatementError

E = TypeVar("E", bound=KsqlError)

_OF_THE_CLASS: Final = ("span", "statement", "entry")
"""Arguments that go to the class as they are."""


@dataclass(frozen=True, slots=True)
class ErrorRow(Generic[E]):
    """An error of the class ``base``; its texts name their facts in braces.

    ``code`` and ``operator`` are those of the class if they are None.
    """

    base: type[E]
    message: str
    detail: str = ""
    hint: str = ""
    code: int | None = None
    operator: bool | None = None

    def __call__(self, **facts: object) -> E:
        """Return the error with these facts."""
        texts = [text.format(**facts) for text in (self.message, self.detail, self.hint)]
        passed = {name: facts[name] for name in _OF_THE_CLASS if name in facts}
        error = self.base(texts[0], detail=texts[1], hint=texts[2], **passed)  # type: ignore[arg-type] # a test compares them
        if self.code is not None:
            error.code = self.code
        if self.operator is not None:
            error.operator = self.operator
        return error

    @property
    def facts(self) -> set[str]:
        """The names that its texts use."""
        texts = f"{self.message}{self.detail}{self.hint}"
        return {name for _, name, _, _ in string.Formatter().parse(texts) if name is not None}

    @property
    def pattern(self) -> str:
        """A pattern of its messages."""
        parts = string.Formatter().parse(self.message)
        return "".join(
            re.escape(text) + (".*" if name is not None else "") for text, name, _, _ in parts
        )


# --- ksql/core ------------------------------------------------------------------------------------

JARS_MISSING: Final = ErrorRow(
    StartError,
    "{missing} of the {which} jars are missing",
    detail="They are expected in {folder}.",
    hint="Run: make setup",
)
FOREIGN_TOKEN: Final = ErrorRow(
    KsqlError,
    "The consistency token was given by another service",
    detail="It is of {scope}; this server is of {here}.",
    hint="Send it to a server of that service; or an empty one to begin with here.",
)

# --- ksql/java ------------------------------------------------------------------------------------

NUMERIC_OVERFLOW: Final = ErrorRow(
    QueryFailed, "Exception caught in process", detail="Numeric field overflow"
)

# --- ksql/functions -------------------------------------------------------------------------------

NO_WHOLE_DIGITS: Final = ErrorRow(StatementError, "DECIMAL precision must be >= 1: DECIMAL(0,0)")

# --- ksql/formats ---------------------------------------------------------------------------------

MESSAGE_NOT_FOUND: Final = ErrorRow(StatementError, "Schema for message {name} does not exist")
UNKNOWN_KIND: Final = ErrorRow(KsqlError, "Schemas of type {kind} are not supported")
WRAP_NEEDS_ONE_COLUMN: Final = ErrorRow(
    StatementError, "'WRAP_SINGLE_VALUE' is only valid for single-field value schemas"
)

# --- ksql/sql -------------------------------------------------------------------------------------

TOO_MANY_WINDOWS: Final = ErrorRow(
    StatementError,
    "Each record would be in {windows} windows, the server allows {most}: the SIZE of "
    "HOPPING windows divided by their ADVANCE.",
    hint="Let the windows ADVANCE by more, or raise ksql.query.windows.per.record.max.",
)

# --- ksql/exec ------------------------------------------------------------------------------------

INTERNAL_TOPIC: Final = ErrorRow(
    StatementError,
    "Cannot {doing} internal topic: {topic}",
    detail="It is internal to Kafka or to a ksql service.",
    hint="Kafka's own tools can read it.",
)
UNKNOWN_JOIN_STATE: Final = ErrorRow(
    ServerError,
    "the state of a join has format {version}, which this version does not know",
    hint="Run the version that wrote it, or a newer one.",
)

# --- ksql/kafka -----------------------------------------------------------------------------------

NO_BROKER: Final = ErrorRow(
    StartError,
    "no Kafka broker is configured",
    hint="Set bootstrap.servers to host:port of a broker.",
)

# --- ksql/spark -----------------------------------------------------------------------------------

CHECKPOINT_UNUSABLE: Final = ErrorRow(
    ServerError,
    "the checkpoint of query {query_id} cannot be used",
    detail="{reason}",
    hint="Look at the disk of ksql.state.dir: its room, and who may write there.",
)
STATE_METADATA_UNKNOWN: Final = ErrorRow(
    ServerError,
    "{file} does not have the form that this version knows",
    detail="{reason}. Spark finds the schemas of the query's state by this file; they must be "
    "those of this checkpoint, also after it was moved or restored.",
    hint="If a later version wrote it, start that version. Else bring the checkpoint back "
    "from a copy, or move it away and start over with ksql.state.anew.",
)
QUERY_START_FAILED: Final = ErrorRow(
    ServerError, "query {query_id} cannot be started", detail="{reason}"
)
START_CANCELLED: Final = ErrorRow(
    ServerError, "query {query_id} is not started, as the server is being stopped"
)
SWITCH_CANCELLED: Final = ErrorRow(
    ServerError, "{query_id} was ended while its plan was being replaced"
)
CUT_OVER_CANCELLED: Final = ErrorRow(
    ServerError, "{query_id} was ended while its rebuilt version was being cut over"
)
LAUNCH_ENDED: Final = ErrorRow(ServerError, "{query_id} was ended while its cut-over was completed")
FORMER_NOT_KEPT: Final = ErrorRow(
    ServerError,
    "{query_id} cannot be rolled back yet: its last cut-over is not completed",
    detail="The rows of its former version are still being kept.",
    hint="Try again in a moment. If the query does not come up, SHOW QUERIES says why.",
    code=50300,
)
ROWS_LOST: Final = ErrorRow(
    ServerError,
    'topic "{topic}", which holds the rows of a version of {query_id}, {loss}',
    detail="A cut-over to this version would delete these rows from the result, too.",
    hint="End the rebuild or rollback (ABORT UPGRADE), and rebuild the query once more.",
)
MISSING_OFFSETS: Final = ErrorRow(
    ServerError, 'topic "{topic}" has no start offset for its partitions {partitions}'
)
STATE_CALL_FAILED: Final = ErrorRow(ServerError, "the state store failed", detail="{message}")
STATE_NOT_COPIED: Final = ErrorRow(
    ServerError,
    "the state of the running version could not be copied for its candidate",
    detail="{reason}",
    hint="Make room in the state directory. The cut-over is tried again.",
)
UNKNOWN_PAGE: Final = ErrorRow(
    ServerError,
    "the query's state has format {version}, which this version does not know",
    hint="Run the version that wrote it, or a newer one.",
)
NO_BATCH: Final = ErrorRow(ServerError, "writing exactly once needs a streaming query")

# --- ksql/views -----------------------------------------------------------------------------------

STORE_BUSY: Final = ErrorRow(ServerError, "the store {where} is open elsewhere")

# --- ksql/control ---------------------------------------------------------------------------------

APPLIED_OFFSET_DAMAGED: Final = ErrorRow(
    StartError,
    "{file} cannot be read",
    detail="{reason}\nIt says which topics a DROP .. DELETE TOPIC has still to delete.",
    hint="Remove the file: the server starts, and such topics, if there are any, stay.",
)
BEING_REPLACED: Final = ErrorRow(
    ServerError,
    "{query_id} is being replaced by another statement",
    hint="Send this one again when that one has ended.",
    code=50300,
)
NO_HISTORY: Final = ErrorRow(
    ServerError,
    "the upgrade '{upgrade_id}' is not known at the moment",
    detail="The ledger, which has the history of upgrades, cannot be read.",
    hint="Ask again later. SHOW UPGRADES; shows those that the service itself knows.",
    code=50300,
)
REPLACED_MEANWHILE: Final = ErrorRow(
    StatementError,
    "{query} was not replaced: the plan that runs is not the expected one",
    detail="The plan of the command at offset {expected} was expected. {now}.",
    hint="Look at the statement that it has now (EXPLAIN), and begin with that.",
    code=40901,
)
REBUILD_UNDER_WAY: Final = ErrorRow(
    StatementError,
    "{query_id} is being rebuilt by another statement",
    hint="SHOW UPGRADES; shows how far it is. ABORT UPGRADE OF {name}; ends it.",
)
NO_ROOM: Final = ErrorRow(
    StatementError,
    "{query_id} was not rebuilt: there is no room for a second state",
    "The state of the running query has {state_bytes} bytes, and {free_bytes} are free on its "
    "disk. At least {least} must stay free (ksql.upgrade.rebuild.min.free.bytes).",
    "Make room, or begin with less: START_MODE='now' has an empty state at first.",
)
NO_REBUILD: Final = ErrorRow(
    StatementError,
    "{query_id} is not being rebuilt",
    hint="SHOW UPGRADES FOR {name}; shows the upgrades that have ended.",
)
OTHER_FORMER: Final = ErrorRow(
    StatementError,
    "{query_id} cannot go back to '{upgrade_id}'",
    detail="Only the version that ran before the last cut-over is kept: '{known}'.",
    hint="Name this one, or leave TO out.",
)
FORMER_READS_NOTHING: Final = ErrorRow(
    StatementError,
    "the former version of {query_id} cannot run any more",
    detail="It reads {sources}, which does not exist any more{elsewhere}.",
    hint="Create what it reads again, and rebuild the query from the former statement.",
)
ROLLBACK_REFUSED: Final = ErrorRow(
    StatementError,
    "the former version of {query_id} has other rows than its readers know",
    detail="{reasons}\nIts result is read or written by {others}.",
    hint="Terminate these queries first.",
)
CUT_OVER_REFUSED: Final = ErrorRow(
    StatementError,
    "{query_id} was not cut over: other queries could not follow its result",
    detail="{reasons}\nSince the upgrade began it is read or written by {others}.",
    hint="Terminate these queries, and the cut-over is tried again. Or end the upgrade: "
    "ABORT UPGRADE OF {name};",
)
REPLACE_DISABLED: Final = ErrorRow(
    StatementError,
    "CREATE OR REPLACE is disabled on this server",
    hint="To enable it, start the server with '{setting}'=true.",
)
UNKNOWN_WRITER: Final = ErrorRow(
    StatementError,
    "There is no query {query_id} that could be replaced",
    detail="{known}.",
    hint="SHOW QUERIES; shows all ids. A new query is made by INSERT INTO .. SELECT.",
)
TABLE_WRITER: Final = ErrorRow(
    StatementError,
    "{query_id} writes a table, which has no other writers",
    hint="Replace it by CREATE OR REPLACE TABLE {name} AS SELECT .. A SOURCE TABLE cannot be "
    "replaced.",
)
OTHER_SINK: Final = ErrorRow(
    StatementError,
    "{query_id} writes {name}, not {given}",
    hint="Write AS INSERT INTO {name} SELECT .. To write into another stream, terminate the query "
    "and create a new one.",
)
OTHER_ID: Final = ErrorRow(
    StatementError,
    "{query_id} keeps its id",
    hint="Leave QUERY_ID out.",
)
NO_QUERIES: Final = ErrorRow(
    StatementError,
    "the file does not contain any persistent queries",
    hint="It needs a CREATE STREAM AS SELECT, CREATE TABLE AS SELECT, INSERT INTO .. SELECT "
    "or CREATE SOURCE TABLE.",
)

# --- ksql/registry --------------------------------------------------------------------------------

REGISTRY_PORT_IN_USE: Final = ErrorRow(
    StartError,
    "the embedded schema registry cannot listen on {host}:{port}",
    detail="{reason}",
    hint="Choose another address in ksql.schema.registry.listener, or name a registry in "
    "ksql.schema.registry.url.",
    operator=False,
)

# --- ksql/cluster ---------------------------------------------------------------------------------

LEASE_UNWRITABLE: Final = ErrorRow(
    StartError,
    "{file} cannot be written",
    detail="{reason}",
    hint="Look at the disk of ksql.state.dir: its room, and who may write there.",
    operator=False,
)

# --- ksql/serving ---------------------------------------------------------------------------------

NOT_ORDERABLE: Final = ErrorRow(
    StatementError, "ORDER BY needs values that have an order: {shown} is {type_}."
)
TOO_MANY_PUSH_QUERIES: Final = ErrorRow(
    KsqlError,
    "Maximum number of push queries exceeded: {limit}",
    hint="Close one, or raise ksql.max.push.queries. PRINT counts as one.",
    code=40003,
)

# --- ksql/http ------------------------------------------------------------------------------------

COMPRESSED_BODY: Final = ErrorRow(
    KsqlError,
    "the request's body is compressed, which this server does not read: {coding}",
    hint="Send it as it is, without Content-Encoding. Answers are compressed for clients "
    "that offer it (Accept-Encoding).",
    code=41500,
)
# Source: RFC 9112, section 6.1.
AMBIGUOUS_BODY: Final = ErrorRow(
    KsqlError,
    "the request has both Content-Length and Transfer-Encoding",
    hint="Send one of them. A proxy that adds the other is to be mended.",
    code=40000,
)

# --- ksql/app -------------------------------------------------------------------------------------

TARGET_THERE: Final = ErrorRow(
    StartError,
    "{target} is there already: a backup overwrites nothing",
    hint="Name a directory that does not exist; its parent must exist.",
)
NEWER_BACKUP: Final = ErrorRow(
    StartError,
    "the backup {folder} has format {version}, this version knows up to {known}",
    hint="Bring it back with the version that made it.",
)
OTHER_SERVICE: Final = ErrorRow(
    StartError,
    'the backup {folder} is of the service "{owner}", not of "{service_id}"',
    hint="Name it: -o ksql.service.id={owner}",
)
BROKER_INSIDE: Final = ErrorRow(
    StartError,
    "the embedded broker's data is a part of the state directory {root}, which a "
    "server uses, or which --no-state leaves out",
    hint="Stop the server and save the directory, too. Or save its topics alone: the server "
    "printed at its start where Kafka is; give that as -o bootstrap.servers=HOST:PORT.",
)
TOPIC_THERE: Final = ErrorRow(
    StartError,
    "the topic {topic} is there: {what}",
    hint="Nothing was changed. To delete it, with all that it has and the backup has not, "
    "and bring the saved one back, add --overwrite.",
)
STATE_THERE: Final = ErrorRow(
    StartError,
    "the state directory {root} is not empty",
    hint="Nothing was changed. --keep-state brings the topics alone back and leaves the "
    "directory as it is: right if only topics were lost. --overwrite moves what is "
    "there to a directory replaced-.. in it and brings the saved state back.",
)
SERVER_RUNS: Final = ErrorRow(
    StartError,
    'a server of the service "{service_id}" runs, on host {host} as process {pid}',
    hint="Nothing was changed. Stop all servers of the service first.",
)
FOREIGN_STATE: Final = ErrorRow(
    StartError,
    'the state directory {path} belongs to the service "{owner}", not to "{service_id}"',
    hint="Choose another ksql.state.dir, or start with that ksql.service.id.",
)
