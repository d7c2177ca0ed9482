"""The properties of the server: doors, state, Spark and user functions."""

from __future__ import annotations

from typing import Final

from ksql.base.properties.model import INT_MAX, Property

_WAIT_MS: Final = 24 * 3_600_000

DOORS: Final = (
    Property(
        name="listeners",
        kind="list",
        default="http://127.0.0.1:8088",
        doc="Addresses of the REST interface; `http://0.0.0.0:8088` is open to every machine, "
        "`https://` needs `ssl.keystore.location`.",
    ),
    Property(
        name="access.control.allow.origin",
        kind="list",
        default="",
        doc="Origins of web pages that may use REST and the embedded registry; `*` allows all.",
    ),
    Property(
        name="access.control.allow.methods",
        kind="list",
        default="GET,POST,HEAD",
        doc="HTTP methods that web pages of those origins may use.",
    ),
    Property(
        name="access.control.allow.headers",
        kind="list",
        default="X-Requested-With,Content-Type,Accept,Origin",
        doc="HTTP headers that web pages of those origins may send.",
    ),
    Property(
        name="ksql.allowed.hosts",
        kind="list",
        default="",
        doc="Names under which clients reach the server, besides addresses, `localhost`, "
        "the machine's name and the listeners'; `*` allows all.",
    ),
    Property(
        name="ksql.server.request.max.bytes",
        kind="int",
        default="10485760",
        low=1_000,
        high=1_000_000_000,
        doc="Longest body of a request, and longest line of `/inserts-stream`.",
    ),
    Property(
        name="ksql.server.command.response.timeout.ms",
        kind="int",
        default="5000",
        high=_WAIT_MS,
        doc="How long a statement waits for its command to be executed.",
    ),
    Property(
        name="ksql.properties.overrides.denylist",
        kind="list",
        default="",
        doc="Properties that sessions and requests may not set.",
    ),
    Property(
        name="ksql.max.push.queries",
        kind="int",
        default="100",
        high=150,  # each holds a thread
        doc="How many push queries may run at a time.",
    ),
    Property(
        name="ksql.query.push.state.max.bytes",
        kind="int",
        default="268435456",
        low=1_000_000,
        doc="How large the state of a push query, or of a pull query over a stream, "
        "may become in the server.",
    ),
    Property(
        name="ksql.heartbeat.enable",
        kind="bool",
        default="false",
        doc="Exchange heartbeats between the servers of a cluster.",
        effect=False,
    ),
)

STATE: Final = (
    Property(
        name="ksql.service.id",
        kind="text",
        default="default_",
        doc="Name of the service, of its command topic and of its state.",
    ),
    Property(
        name="ksql.state.dir",
        kind="text",
        default="",
        doc="Directory of checkpoints, stores, ledger and embedded broker; if empty, "
        "`~/.local/state/ksql-spark`.",
    ),
    Property(
        name="ksql.state.adopt",
        kind="text",
        default="",
        doc="Begin anew with the Kafka cluster and command topic that a refused start has named; "
        "the old state is moved aside.",
    ),
    Property(
        name="ksql.state.anew",
        kind="list",
        default="",
        doc="Ids of queries, or `all`, that may begin anew if their checkpoint is missing.",
    ),
    Property(
        name="ksql.state.aside.retention.ms",
        kind="int",
        default="604800000",
        low=-1,
        doc="How long state that no query knows is kept aside before it is deleted; "
        "-1 keeps it for ever.",
    ),
    Property(
        name="ksql.ledger.url",
        kind="text",
        default="",
        doc="Database of the ledger; if empty, SQLite in the state directory.",
    ),
    Property(
        name="ksql.command.topic.skip",
        kind="list",
        default="",
        doc="Offsets of commands to give up for good, if the server cannot execute them.",
    ),
)

SPARK: Final = (
    Property(
        name="ksql.spark.master",
        kind="text",
        default="local[*]",
        doc="Master of the Spark application that runs the queries.",
    ),
    Property(
        name="ksql.spark.driver.memory",
        kind="text",
        default="1g",
        doc="Heap of the Spark driver.",
    ),
    Property(
        name="ksql.query.persistent.active.limit",
        kind="int",
        default="2147483647",
        high=INT_MAX,
        doc="How many persistent queries may run at a time.",
    ),
    Property(
        name="ksql.query.retry.backoff.initial.ms",
        kind="int",
        default="15000",
        doc="First pause before a failed query is started again.",
    ),
    Property(
        name="ksql.query.retry.backoff.max.ms",
        kind="int",
        default="900000",
        doc="Longest pause before a failed query is started again.",
    ),
    Property(
        name="ksql.query.error.max.queue.size",
        kind="int",
        default="10",
        high=10_000,
        doc="How many errors of a query are kept and shown.",
    ),
    Property(
        name="ksql.query.replace.timeout.ms",
        kind="int",
        default="60000",
        doc="How long a replacement waits for the running batch to end; then it is refused and "
        "the running plan continues.",
    ),
)

USER_FUNCTIONS: Final = (
    Property(
        name="ksql.extension.dir",
        kind="text",
        default="ext",
        doc="Directory of user functions; a relative path starts at the configuration file or, "
        "without one, at the state directory.",
    ),
    Property(
        name="ksql.udfs.enabled",
        kind="bool",
        default="true",
        doc="Load user functions.",
    ),
    Property(
        name="ksql.udf.timeout.ms",
        kind="int",
        default="10000",
        low=100,
        high=3_600_000,
        doc="How long one call of a user function may take before its query ends.",
    ),
    Property(
        name="ksql.udf.memory.max.bytes",
        kind="int",
        default="2147483648",
        low=268_435_456,
        doc="How large a process that calls user functions may grow before its query ends.",
    ),
)
