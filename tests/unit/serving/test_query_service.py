"""What is refused before a query of a client runs, and which rows a pull query sees."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import pytest

from ksql.app.monitor import AllEnds
from ksql.cluster.members import Server
from ksql.cluster.replicas.consistency import ConsistencyResolver, QueryStuck, TokenNotReached
from ksql.cluster.replicas.failover import NoReplica, ReadProvenance
from ksql.cluster.replicas.local_replicas import LagTracker, LocalReplicas
from ksql.cluster.replicas.partition_assignment import PartitionAssignment
from ksql.cluster.replicas.read_request import Processed
from ksql.cluster.replicas.replica_status import ReplicaStatus
from ksql.cluster.replicas.replicated import Caller, Replicas
from ksql.control.pull_metrics import BySite, PullMetrics
from ksql.control.statements.execute import RequestFailed
from ksql.core.config import Settings
from ksql.core.errors import ServerError
from ksql.core.records import Offset
from ksql.core.token import Token
from ksql.serving import table_provider as module
from ksql.serving.query_service import QueryService
from ksql.serving.results import freshness_of, is_quick, marks_deletes, token_of
from ksql.serving.table_provider import TableProvider
from ksql.views.materialized_view import MaterializedView, TableNotReady
from ksql.views.store_config import StoreConfig
from ksql.views.store_writer import PartitionStore
from ksql.views.stores.rocks import StoreBudget
from ksql.views.stores.store_types import open_store
from ksql.views.view_maintainer import ViewMaintainer
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"


def refused(text, **properties):
    world = World(S)
    reads = QueryService(world.engine, None, None, None, lambda: 1000)
    with pytest.raises(RequestFailed) as caught:
        reads.open(text, world.services, world.settings, properties, {})
    return caught.value


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"no.such": "1"}, "Not recognizable"),
        ({"auto.offset.reset": "x"}, "auto.offset.reset"),
        ({"ksql.service.id": "mine"}, "server's configuration"),
    ],
)
def test_properties_that_cannot_be_set_are_no_fault_of_the_statement(properties, says):
    failed = refused("SELECT * FROM S EMIT CHANGES;", **properties)
    assert says in failed.error.text()
    assert (failed.error.code, failed.statement_text) == (40000, "")


T = "CREATE TABLE T (K STRING PRIMARY KEY, A BIGINT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);"


class NoPlaces:
    """Knows of topics without records."""

    def begin_offsets(self, _topics):
        return {}

    end_offsets = begin_offsets

    def topics(self):
        return {"t": 1}


class NoRecords:
    """A reader of nothing."""

    open = False
    positions: ClassVar[dict[tuple[str, int], int]] = {}

    def close(self):
        self.open = False

    end = close


def pushed(text, *, tombstones, **properties):
    world = World(S, T)
    reads = QueryService(world.engine, lambda *_: NoRecords(), NoPlaces(), None, lambda: 1000)
    given = {"auto.offset.reset": "earliest"} | properties
    return reads.open(text, world.services, world.settings, given, {}, tombstones=tombstones)


@pytest.mark.parametrize(
    ("show", "form_has_them", "shown", "marked"),
    [
        ("auto", True, True, False),
        ("auto", False, False, False),
        ("true", True, True, True),
        ("true", False, True, True),
        ("false", True, False, False),
        ("false", False, False, False),
    ],
)
def test_a_setting_says_whether_deletions_are_shown(show, form_has_them, shown, marked):
    text, settings = "SELECT * FROM T EMIT CHANGES;", {"ksql.push.show.deletes": show}
    stream = pushed(text, tombstones=form_has_them, **settings)
    assert (stream.query._deletes, marks_deletes(stream)) == (shown, marked)


def test_print_counts_as_a_push_query_until_it_ends():
    world, ends = World(T), []

    def feed(_start, on_end):
        ends.append(on_end)
        return NoRecords()

    world.settings = Settings({**world.settings.server, "ksql.max.push.queries": "2"})
    reads = QueryService(world.engine, feed, NoPlaces(), None, lambda: 1000)
    texts = "PRINT 't';", "SELECT * FROM T EMIT CHANGES;"

    def open_(text):
        return reads.open(text, world.services, world.settings, {}, {})

    for text in texts:
        open_(text)
    for text in texts:
        with pytest.raises(RequestFailed, match="push queries exceeded: 2") as refused:
            open_(text)
        assert refused.value.error.hint.endswith("PRINT counts as one.")
    ends.pop(0)()
    open_(texts[0])


def test_those_that_begin_at_the_same_time_count_too():
    world, refusals = World(T), []
    world.settings = Settings({**world.settings.server, "ksql.max.push.queries": "1"})

    def feed(_start, _on_end):
        with pytest.raises(RequestFailed) as refused:
            open_()
        refusals.append(refused.value)
        return NoRecords()

    reads = QueryService(world.engine, feed, NoPlaces(), None, lambda: 1000)

    def open_():
        return reads.open("SELECT * FROM T EMIT CHANGES;", world.services, world.settings, {}, {})

    open_()
    assert [each.error.code for each in refusals] == [40003]


def test_a_column_of_the_marks_name_is_refused_where_it_would_be_added():
    text = "SELECT K, A AS ROWDELETED FROM T EMIT CHANGES;"
    settings = {"ksql.push.show.deletes": "true"}
    with pytest.raises(RequestFailed, match="ROWDELETED"):
        pushed(text, tombstones=False, **settings)
    pushed(text, tombstones=True, **settings)
    pushed(text.replace("FROM T", "FROM S"), tombstones=False, **settings)


@pytest.mark.parametrize(
    ("text", "says", "quoted"),
    [
        ("", "Expected exactly one KSQL statement; found 0 instead", ""),
        ("SHOW STREAMS; SHOW STREAMS;", "found 2 instead", "SHOW STREAMS; SHOW STREAMS;"),
        ("SHOW STREAMS;", "not a query", "SHOW STREAMS;"),
        ("SELECT * FROM T EMIT CHANGES;", "T", "SELECT * FROM T EMIT CHANGES;"),
        ("SELECT * FROM S EMIT", "", "SELECT * FROM S EMIT"),
        (
            "SELECT * FROM S ORDER BY A DESC EMIT CHANGES;",
            "line 1:26: ORDER BY is only supported in pull queries.",
            "SELECT * FROM S ORDER BY A DESC EMIT CHANGES;",
        ),
        (
            "SELECT * FROM S EMIT CHANGES LIMIT 1 OFFSET 1;",
            "OFFSET is only supported in pull queries.",
            "SELECT * FROM S EMIT CHANGES LIMIT 1 OFFSET 1;",
        ),
    ],
)
def test_statements_that_cannot_be_answered(text, says, quoted):
    failed = refused(text)
    assert says in failed.error.text()
    assert (failed.error.code, failed.statement_text) == (40001, quoted)


# --- which rows a pull query sees

COUNT = "CREATE TABLE T AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"


class Ends:
    end: int | None = 10

    def end_offsets(self, topics, *, committed=True):
        if self.end is None:
            raise ServerError("no broker")
        return {(topic, 0): self.end for topic in topics}


class HeldViews(ViewMaintainer):
    """Follows nothing: its views, and why they cannot answer, are what a test says."""

    def __init__(self, folder):
        super().__init__(None, folder, None)
        self.views = {}
        self.reason = ""

    def tables(self):
        return list(self.views.values())

    def table(self, source):
        return self.views.get(source.name)

    def of_query(self, query_id):
        return next((v for v in self.tables() if v.source.created_by == query_id), None)

    def hindrance(self, source=None):
        return self.reason


class Counted:
    """A table of one partition, in a transactional store that has read some of its topic."""

    def __init__(self, tmp_path, reached, goal=10, replicas=None):
        self.world = World(S + COUNT)
        self.store = open_store("txn_rocksdb", tmp_path / "s", StoreBudget())
        self.store.put([(b"a", b'{"C": 1}', 0)])
        self.store.commit(Offset(4))
        self.store.put([(b"a", b'{"C": 2}', 0), (b"b", b'{"C": 1}', 0)])
        source = self.world.catalog.source("T").queryable()
        part = PartitionStore(
            place=("T", 0), store=self.store, commit_s=1, reached=reached, goal=goal
        )
        self.part, self.admin, self.begun = part, Ends(), True
        self.held = HeldViews(tmp_path / "stores")
        self.views = self.held.views
        self.views["T"] = MaterializedView(source, StoreConfig("txn_rocksdb", None, 1), {0: part})
        self.processed: dict[str, dict[int, int]] = {}
        self.failure = ""
        following = ConsistencyResolver(
            lambda: self.world.catalog,
            lambda _query, _credentials: Processed(self.processed, self.failure),
            AllEnds(self.admin),
        )
        self.provider = TableProvider(
            self.held, self.admin, lambda _query: self.begun, replicas, following
        )
        self.reads = QueryService(self.world.engine, None, self.admin, self.provider, lambda: 1000)

    def open(self, token=None, text="SELECT * FROM T;", info=False, **properties):
        world, caller = self.world, Caller(token=token, info=info)
        return self.reads.open(text, world.services, world.settings, properties, {}, caller=caller)

    def ask(self, token=None, **properties):
        query = self.open(token, **properties)
        return sorted(row.values for batch in query.batches() for row in batch)

    def trouble(self):
        """The reason why it cannot be asked."""
        with pytest.raises(RequestFailed, match="not ready") as caught:
            self.ask()
        assert isinstance(caught.value.error, TableNotReady)
        return caught.value.error


@pytest.fixture
def counted(tmp_path):
    counters = []

    def make(*args, **more):
        counters.append(Counted(tmp_path, *args, **more))
        return counters[-1]

    yield make
    for each in counters:
        each.store.close()


LEVEL, LAG = "ksql.query.pull.isolation.level", "ksql.query.pull.max.allowed.offset.lag"


def test_a_pull_query_sees_what_is_not_committed_unless_it_asks_for_what_is(counted):
    table = counted(10)
    assert table.ask() == [("a", 2), ("b", 1)]
    assert table.ask(**{LEVEL: "read_uncommitted"}) == [("a", 2), ("b", 1)]
    with pytest.raises(RequestFailed, match="not ready"):
        table.ask(**{LEVEL: "read_committed"})
    table.store.commit(Offset(10))
    table.store.put([(b"a", b'{"C": 3}', 0)])
    assert table.ask(**{LEVEL: "READ_COMMITTED"}) == [("a", 2), ("b", 1)]
    assert table.ask() == [("a", 3), ("b", 1)]


def test_a_store_that_is_being_filled_answers_only_where_its_lag_is_allowed(counted):
    table = counted(7)
    for properties in ({}, {LAG: "2"}, {LAG: "3", LEVEL: "read_committed"}):
        with pytest.raises(RequestFailed, match="not ready"):
            table.ask(**properties)
    assert table.ask(**{LAG: "3"}) == [("a", 2), ("b", 1)]
    assert table.ask(**{LAG: "6", LEVEL: "read_committed"}) == [("a", 1)]
    with pytest.raises(RequestFailed, match="not ready"):
        table.ask()  # what one request allows is not for others


def test_a_table_that_was_just_created_is_ready_with_what_its_topic_had_then(counted):
    table = counted(7, goal=0)
    trouble = table.trouble()
    assert trouble.patience_s > 0
    table.admin.end = 99  # a busy topic: its end is not reached again
    assert not trouble.is_ready()
    table.part.reached = 10
    assert trouble.is_ready()
    assert table.ask() == [("a", 2), ("b", 1)]


def test_a_table_waits_for_the_first_batch_of_its_query(counted):
    table = counted(10)
    table.begun = False
    trouble = table.trouble()
    assert "first batch" in trouble.detail
    assert not trouble.is_ready()
    table.begun = True
    assert trouble.is_ready()
    table.begun = False  # asked no more
    assert table.ask() == [("a", 2), ("b", 1)]


def test_waiting_reader_is_shown_the_trouble_of_kafka(counted):
    table = counted(10)
    table.begun = False
    trouble = table.trouble()
    table.begun, table.admin.end = True, None
    assert trouble.is_ready()
    with pytest.raises(RequestFailed, match="no broker"):
        table.ask()


def test_a_look_up_waits_for_nothing_in_a_table_that_has_answered(counted):
    table = counted(7)
    text = "SELECT C FROM T WHERE K = 'b';"

    def at_once(**properties):
        result = table.reads.at_once(text, table.world.settings, properties, Caller())
        return result and [row.values for batch in result.batches() for row in batch]

    def planned(**properties):
        world = table.world
        return table.reads.open(text, world.services, world.settings, properties, {})

    lagging = {LAG: "3"}
    assert next(planned(**lagging).batches())[0].values == (1,)
    assert at_once(**lagging) is None  # it may be that Kafka is to be asked
    table.part.reached = 10
    committed = {LEVEL: "read_committed"}
    planned()
    assert (at_once(), at_once(**committed)) == ([(1,)], None)
    table.store.commit(Offset(10))
    planned(**committed)
    table.store.put([(b"b", b'{"C": 5}', 0)])
    for _ in range(2):  # each by its own terms
        assert (at_once(), at_once(**committed), at_once(**lagging)) == ([(5,)], [(1,)], [(5,)])
    table.part.goal = 12
    with pytest.raises(RequestFailed, match="not ready"):
        at_once()


class Elsewhere:
    """The replicas of other servers, and whether there are any."""

    host = "a:1"

    def __init__(self):
        self.replicas = self
        self.requests = []
        self.at_least = {}

    def is_alone(self):
        return False

    def rows(self, source, partitions, reader):
        self.requests.append((source.name, partitions))
        self.at_least = reader.at_least
        return {}


def test_a_table_whose_store_waits_here_is_read_from_other_servers(counted):
    others = Elsewhere()
    table = counted(10, replicas=others)
    view = table.views.pop("T")
    trouble = table.trouble()  # its stores were not looked at yet
    assert not trouble.is_ready()
    table.held.reason = "it is newer"
    assert trouble.is_ready()
    table.admin.end = 99
    table.open()
    table.held.reason, table.views["T"] = "", view
    table.open()
    assert others.requests == [("T", 1)] * 2


def test_the_end_of_a_topic_is_requested_again_once_that_was_recreated(counted):
    """Copies at other servers are not asked for offsets that the new topic does not have."""
    others = Elsewhere()
    table = counted(10, replicas=others)
    for topic_id, end, at_least in (
        ("", 9, 9),
        ("a", 11, 11),
        ("a", 12, 11),
        ("", 13, 11),
        ("b", 2, 2),
    ):
        table.views["T"] = replace(table.views["T"], topic_id=topic_id)
        table.admin.end = end
        table.open()
        assert others.at_least == {("T", 0): at_least}


def test_a_server_that_is_left_alone_waits_for_the_partitions_of_the_other(counted):
    table = counted(10)
    tables = table.views
    tables["T"] = replace(tables["T"], partitions=2)
    trouble = table.trouble()
    assert not trouble.is_ready()
    tables["T"] = replace(tables["T"], partitions=1)
    assert trouble.is_ready()
    assert table.ask() == [("a", 2), ("b", 1)]


def test_pull_queries_are_counted_when_they_have_ended(counted):
    table = counted(10)
    pulls = table.reads.pulls("here:1")
    assert pulls("T") == {}
    query = table.open()
    assert pulls("T") == {}
    list(query.batches())
    query.close()
    assert pulls("T") == {"here:1": PullMetrics(total=1, local=1, last_ms=1000)}
    text = "SELECT C FROM T WHERE K = 'b';"
    for _ in range(2):  # planned, and planned already
        list(table.open(text=text).batches())
    result = table.reads.at_once(text, table.world.settings, {}, Caller())
    assert result is not None
    list(result.batches())
    assert pulls("T")["here:1"] == PullMetrics(total=4, local=4, last_ms=1000)
    with pytest.raises(RequestFailed):
        table.open(text="SELECT NONE FROM T;")
    assert pulls("T")["here:1"] == PullMetrics(total=5, failed=1, local=4, last_ms=1000)
    table.part.goal = 99
    table.trouble()  # it waits, and is started again then
    assert pulls("T")["here:1"].total == 5


def test_reads_of_other_servers_are_distinguished_from_those_of_this_one():
    reads = TableProvider(
        None, None, None, SimpleNamespace(host="a:1"), SimpleNamespace(is_known=None)
    )
    origins, status = ReadProvenance(), ReplicaStatus(state="RUNNING")
    for table, partition, host in (
        ("T", 0, "a:1"), ("T", 1, "b:1"), ("T", 2, "b:1"), ("T", 3, "c:1"), ("U", 0, "b:1"),
    ):  # fmt: skip
        origins.note(table, partition, host, status)
    assert reads.sites(origins) == {"T": BySite(local=1, remote=2), "U": BySite(remote=1)}


# --- a server alone, with the replicas that it has


class Alone:
    """The members of a service of one server."""

    me = Server("here", 1)

    def alive(self):
        return (self.me,)

    def waiting(self):
        return frozenset()


class NoOthers:
    def silent(self, server):
        return ""

    def lags(self, query_id, partition):
        return {}


@pytest.fixture
def alone(counted, monkeypatch):
    """A table at a server that has parts for its replicas; its topic ends where ``admin`` says."""
    monkeypatch.setattr(module, "_READY_S", 0.1)
    replicas = SimpleNamespace(host="here:1")
    table = counted(10, replicas=replicas)
    table.now_s = 0.0
    assignment = PartitionAssignment(Alone(), 0)
    local_replicas = LocalReplicas(
        table.held, assignment, LagTracker(table.admin.end_offsets, lambda: table.now_s)
    )
    replicas.local_replicas = local_replicas
    replicas.replicas = Replicas(assignment, local_replicas, None, table.held, NoOthers())
    return table


TIME_LAG = "ksql.query.pull.max.allowed.time.lag.ms"


def test_a_stated_limit_binds_the_only_copy_too(alone):
    assert alone.ask(**{LAG: "0"}) == [("a", 2), ("b", 1)]
    assert alone.ask(**{TIME_LAG: "0"}) == [("a", 2), ("b", 1)]
    alone.now_s, alone.admin.end = 28.0, 510  # it slept, and others wrote
    assert alone.ask() == [("a", 2), ("b", 1)]
    assert alone.ask(**{LAG: "500", TIME_LAG: "28000"}) == [("a", 2), ("b", 1)]
    for limit in ({LAG: "499"}, {TIME_LAG: "27999"}):
        with pytest.raises(NoReplica, match="exceed the maximum allowed lag") as caught:
            alone.ask(**limit)
        assert caught.value.code == 50302
        assert "lag 500" in caught.value.detail


def test_limits_are_no_question_that_is_answered_at_once(alone):
    text = "SELECT C FROM T WHERE K = 'b';"
    list(alone.open(text=text).batches())
    list(alone.open(text=text, **{LAG: "0"}).batches())

    def at_once(**properties):
        return alone.reads.at_once(text, alone.world.settings, properties, Caller())

    assert at_once() is not None
    assert at_once(**{LAG: "0"}) is None
    assert at_once(**{LEVEL: "read_committed"}) is None


@pytest.mark.parametrize(("level", "position"), [("read_committed", 10), ("read_uncommitted", 12)])
def test_reported_position_is_that_of_the_rows(alone, level, position):
    alone.store.commit(Offset(10))
    alone.ask()
    alone.part.put([(b"a", b'{"C": 3}', 0)], 12, 0.0)
    alone.admin.end = 20
    query = alone.open(info=True, **{LEVEL: level})
    rows = sorted(row.values for batch in query.batches() for row in batch)
    assert rows == [("a", 2 if position == 10 else 3), ("b", 1)]
    alone.part.put([(b"a", b'{"C": 4}', 0)], 15, 0.0)
    alone.part.target = 15
    alone.part.commit_between_transactions()  # before the client is told
    [read] = freshness_of(query)
    assert (read.status.position, read.status.offset_lag) == (position, 20 - position)
    assert (read.host, read.status.role) == ("here:1", "ACTIVE")


def test_a_part_of_a_transaction_is_not_committed(alone):
    alone.store.commit(Offset(10), complete=False)
    assert alone.ask() == [("a", 2), ("b", 1)]
    with pytest.raises(RequestFailed, match="not ready"):
        alone.ask(**{LEVEL: "read_committed"})
    alone.part.target = 10
    alone.part.commit_between_transactions()
    assert alone.ask(**{LEVEL: "read_committed"}) == [("a", 2), ("b", 1)]


# --- what a client has seen

WRITTEN = Token().with_({("s", 0): 3})
TIMEOUT = "ksql.query.pull.consistency.token.timeout.ms"


def late(table, token=WRITTEN, **properties):
    """The reason why a table may not answer yet."""
    with pytest.raises(RequestFailed) as caught:
        table.ask(token, **properties)
    error = caught.value.error
    assert isinstance(error, TokenNotReached)
    assert error.code == 50301
    return error


def test_a_table_answers_once_its_query_has_processed_and_its_store_followed(counted):
    table = counted(10)
    trouble = late(table, **{TIMEOUT: "250"})
    assert trouble.patience_s == 0.25
    assert "has processed partition 0 of s up to the offset 0; 3 is asked for" in trouble.detail
    assert table.ask() == [("a", 2), ("b", 1)]  # who has no token does not wait
    table.admin.end = 12
    table.processed = {"s": {0: 3}}
    assert trouble.is_ready()
    trouble = late(table)
    assert "the store of T has followed partition 0 of T up to the offset 10" in trouble.detail
    assert not trouble.is_ready()
    table.admin.end = 99  # a busy topic: its end is not reached again
    table.part.reached = 12
    assert trouble.is_ready()
    assert table.ask(WRITTEN) == [("a", 2), ("b", 1)]


def test_a_query_that_has_failed_is_not_waited_for(counted):
    table = counted(10)
    trouble = late(table)
    table.failure = "its topic is gone"  # while the client waits
    assert trouble.is_ready()
    with pytest.raises(RequestFailed) as caught:
        table.ask(WRITTEN)
    error = caught.value.error
    assert isinstance(error, QueryStuck)
    assert not isinstance(error, TableNotReady)
    assert table.world.query("T").id in error.message
    assert "its topic is gone" in error.detail
    assert table.ask() == [("a", 2), ("b", 1)]


def test_a_lag_that_is_allowed_is_none_that_a_token_may_have(counted):
    table = counted(7)
    table.processed = {"s": {0: 3}}
    assert table.ask(**{LAG: "3"}) == [("a", 2), ("b", 1)]
    assert "up to the offset 7; 10 is asked for" in late(table, **{LAG: "3"}).detail


def test_committed_reads_wait_for_the_commit(counted):
    table = counted(10, goal=4)
    table.ask()
    table.processed = {"s": {0: 3}}
    assert "up to the offset 4; 10" in late(table, **{LEVEL: "read_committed"}).detail
    table.store.commit(Offset(10))
    assert table.ask(WRITTEN, **{LEVEL: "read_committed"}) == [("a", 2), ("b", 1)]


@pytest.mark.parametrize("text", ["SELECT * FROM T;", "SELECT * FROM T WHERE K = 'a';"])
def test_an_answer_names_what_its_client_has_seen(counted, text):
    table = counted(10)
    table.open(Token(), text).close()
    query = table.open(Token(), text)  # which is planned already
    assert not is_quick(query)
    list(query.batches())
    assert token_of(query)().places() == {("T", 0): 10}
    table.part.putting = 11  # which may have been visible
    assert token_of(query)().places() == {("T", 0): 11}
    assert token_of(table.open(None, text)) is None


def test_token_of_an_answer_includes_the_requested_one(counted):
    table = counted(10)
    table.processed = {"s": {0: 3}}
    query = table.open(WRITTEN)
    list(query.batches())
    assert token_of(query)() == WRITTEN.with_({("T", 0): 10})


def test_reads_of_one_client_never_go_back(counted):
    table = counted(10)
    table.ask()
    seen = Token().with_({("T", 0): 12})
    table.admin.end = 12
    assert "up to the offset 10; 12 is asked for" in late(table, seen).detail
    table.part.reached = 12
    assert table.ask(seen) == [("a", 2), ("b", 1)]


def test_nothing_is_kept_about_queries_that_are_no_more(counted):
    table = counted(10)
    tables = table.reads._tables
    tables._begun.add("GONE")
    tables._first_ends["GONE"] = "", {}
    table.ask()
    query_id = table.world.query("T").id
    assert (tables._begun, set(tables._first_ends)) == ({query_id}, {query_id})
