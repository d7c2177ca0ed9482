"""Copies of tables read from other servers: over real sockets, whatever becomes of those."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time

import httpx
import orjson
import pytest

from ksql.cluster.members import Server
from ksql.cluster.replicas import frames
from ksql.cluster.replicas.failover import NoReplica
from ksql.cluster.replicas.local_replicas import LagTracker, LocalReplicas
from ksql.cluster.replicas.partition_assignment import PartitionAssignment
from ksql.cluster.replicas.read_request import (
    MEDIA,
    PATH,
    Processed,
    ReadRejected,
    ReadRequest,
    Unreachable,
    processed_of,
    status_of,
)
from ksql.cluster.replicas.replica_client import Peers
from ksql.cluster.replicas.replica_status import MISSING, ReadPolicy, ReplicaStatus, StalenessLimits
from ksql.cluster.replicas.replicated import QueryReader, Replicas
from ksql.core.config import Settings
from ksql.core.records import Offset
from ksql.core.token import FILE, HEADER, BadSecret, ServerSecret, Token
from ksql.core.types.windowed import window_key
from ksql.http.connections import listen
from ksql.http.hosting import HttpServer
from ksql.views.store_writer import PartitionStore
from ksql.views.stores.base import HiddenWindows, Stored, StoreDamaged, StoredRow
from ksql.views.stores.memory import MemoryStore
from ksql.views.stores.retention_store import RetentionStore
from server import paths
from server.app import create_app
from server.context import AppContext
from server.users import Users
from tests.unit.http.clients import hosted
from tests.unit.server.fakes import FakeService
from tests.unit.server.web import ask as call
from tests.unit.views.stores.support import prefixed

HOME = "CTAS_T_1"
SOURCE = type("Source", (), {"name": "T", "topic": "T", "created_by": HOME})
RUNNING = ReadPolicy(allowed=StalenessLimits())
STANDBYS = StalenessLimits(standby_reads=True, restoring=True)
END = 100


class Tables:
    """One table of one partition."""

    waits = False

    def __init__(self):
        self.store = MemoryStore()
        self.part = PartitionStore(
            place=("T", 0), store=self.store, commit_s=1, reached=END, goal=END
        )
        self.here = True

    def tables(self):
        table = type("Table", (), {"source": SOURCE, "parts": {0: self.part}})
        return [table] if self.here else []

    def of_query(self, query_id):
        return next(iter(self.tables()), None) if query_id == HOME else None

    def await_progress(self, timeout_s):
        threading.Event().wait(timeout_s / 10)


class Members:
    def __init__(self, me, there):
        self.me = me
        self.there = there
        self.those: set[Server] = set()

    def alive(self):
        return tuple(self.there)

    def waiting(self):
        return frozenset(self.those)


class Others:
    """Nothing is known of the others."""

    def silent(self, server):
        return ""

    def lags(self, query_id, partition):
        return {}


class Host(FakeService):
    """A server with a copy; ``asks`` counts what was asked of it."""

    def __init__(self, members):
        super().__init__()
        self.table = Tables()
        self.waiting = members.those
        self.assignment = PartitionAssignment(members, 1)
        self.now_s, self.end = 0.0, END
        lag_tracker = LagTracker(
            lambda topics: {(topic, 0): self.end for topic in topics}, self.clock
        )
        self.local_replicas = LocalReplicas(self.table, self.assignment, lag_tracker)
        self.asks = 0
        self.done = {}
        self.failure = ""

    def clock(self):
        return self.now_s

    def processed(self, query_id):
        return Processed(self.done.get(query_id, {}), self.failure)

    def read_replica(self, ask):
        self.asks += 1
        return self.local_replicas.read(ask)

    def replica_statuses(self):
        self.local_replicas.refresh()
        return self.local_replicas.replica_statuses()

    def holders(self, table, key):
        return [{"table": table, "key": key}]


class Running:
    """A host behind a socket of its own."""

    def __init__(self, there, users=None, secret=None):
        self.sock = listen("127.0.0.1", 0)
        self.server = Server("127.0.0.1", self.sock.getsockname()[1])
        there.append(self.server)
        self.host = Host(Members(self.server, there))
        self.host.host = str(self.server)
        self.context = AppContext(self.host)
        app = create_app(context=self.context, users=users, secret=secret)
        self.http = HttpServer(app, [self.sock], 1)
        self.http.start("http")
        self.ended = False

    def end(self):
        if not self.ended:
            self.ended = True
            self.context.shut()
            self.http.stop()
            self.context.release()
            self.sock.close()


@contextlib.contextmanager
def running(count, users=None, secret=None):
    there: list[Server] = []
    servers = [Running(there, users, secret) for _ in range(count)]
    peers = Peers(5.0, secret=secret)
    try:
        yield servers, peers
    finally:
        peers.close()
        for each in servers:
            each.end()


def put(host, *keys, value=b"v"):
    host.table.store.put((key, value, 7) for key in keys)


def ask(**more):
    return ReadRequest(query_id=HOME, partition=0, terms=more.pop("terms", RUNNING), **more)


def names(count):
    return [b"%05d" % number for number in range(count)]


# --- one copy


def test_keys_ranges_and_scans_come_as_they_are_stored():
    with running(1) as ([one], peers):
        keys = names(5_000)
        put(one.host, *keys, value=bytes(100))
        copy = peers.replicas_of(one.server)
        result = copy.read(ask(keys=[b"00003", b"none", b"00001"]))
        assert [each for some in result.answers for each in some] == [
            Stored(bytes(100), 7),
            None,
            Stored(bytes(100), 7),
        ]
        ranged = copy.read(ask(span=(b"00010", b"00012")))
        assert [row.key for some in ranged.rows for row in some] == [b"00010", b"00011"]
        scanned = copy.read(ask())
        rows = [row for some in scanned.rows for row in some]
        assert rows == [StoredRow(key, bytes(100), 7) for key in keys]
        assert scanned.status == ReplicaStatus(state="RUNNING", role="ACTIVE", position=END)


def test_a_copy_that_is_restored_says_so_and_does_not_answer():
    with running(1) as ([one], peers):
        put(one.host, b"a")
        one.host.table.part.reached = 40
        copy = peers.replicas_of(one.server)
        with pytest.raises(ReadRejected) as caught:
            copy.read(ask(keys=[b"a"]))
        assert (caught.value.status.state, caught.value.status.position) == ("RESTORING", 40)

        def within(lag):
            terms = ReadPolicy(allowed=StalenessLimits(offset_lag=lag), running=False, limited=True)
            return copy.read(ask(keys=[b"a"], terms=terms))

        with pytest.raises(ReadRejected) as caught:
            within(59)
        assert caught.value.status.offset_lag == 60
        result = within(60)
        assert result.status.offset_lag == 60
        assert list(result.answers) == [[Stored(b"v", 7)]]


def test_a_server_that_has_slept_looks_where_its_topic_ends_before_it_answers():
    """In its memory the end is where its rows are; its first answer must not believe that."""
    with running(1) as ([one], peers):
        put(one.host, b"a")
        copy = peers.replicas_of(one.server)
        limited = ReadPolicy(allowed=StalenessLimits(offset_lag=0), limited=True)
        result = copy.read(ask(keys=[b"a"], terms=limited))
        assert (result.status.role, result.status.offset_lag) == ("ACTIVE", 0)
        assert list(result.answers) == [[Stored(b"v", 7)]]
        one.host.now_s, one.host.end = 28.0, END + 60_000
        plain = copy.read(ask(keys=[b"a"]))
        assert plain.status.offset_lag is None  # it knows that it does not know
        assert list(plain.answers) == [[Stored(b"v", 7)]]
        with pytest.raises(ReadRejected) as caught:
            copy.read(ask(keys=[b"a"], terms=limited))
        assert caught.value.status.offset_lag == 60_000


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("span", [True, False])
def test_a_position_is_of_the_rows_that_it_comes_with(committed, span):
    """A writer that goes on behind the look at the position, and before the rows are read."""
    with running(1) as ([one], peers):
        part = one.host.table.part
        part.store.put([(b"a", b"100", 7)])
        part.store.commit(Offset(END))
        store = part.store
        moved: list[bool] = []

        def late(read):
            def read_late(*args):
                if not moved:
                    moved.append(1)
                    writer = threading.Thread(target=write)
                    writer.start()
                    writer.join()
                return read(*args)

            return read_late

        def write():
            part.put([(b"a", b"%d" % (END + 5), 8)], END + 5, 0.0)
            part.commit()

        kept = store.committed()
        kept.range, kept.get = late(kept.range), late(kept.get)
        store.committed = lambda: kept
        if not committed:
            store.range, store.get = late(store.range), late(store.get)
        request_ = ask(committed=committed) if span else ask(committed=committed, keys=[b"a"])
        result = peers.replicas_of(one.server).read(request_)
        rows = [row for some in (result.rows or result.answers) for row in some]
        assert moved
        assert [int(row.value) for row in rows] == [result.status.position]


def test_a_copy_with_a_part_of_a_transaction_shows_no_committed_rows():
    with running(1) as ([one], peers):
        part = one.host.table.part
        part.put([(b"a", b"1", 7)], END + 1, 0.0)
        part.commit(complete=False)
        copy = peers.replicas_of(one.server)
        assert list(copy.read(ask(keys=[b"a"])).answers) == [[Stored(b"1", 7)]]
        with pytest.raises(ReadRejected) as caught:
            copy.read(ask(keys=[b"a"], committed=True))
        assert caught.value.status.state == "RESTORING"
        part.target = END + 1
        part.commit_between_transactions()
        result = copy.read(ask(keys=[b"a"], committed=True))
        assert list(result.answers) == [[Stored(b"1", 7)]]


def test_replica_of_a_waiting_server_is_used_last_and_for_a_dead_one():
    with running(2) as (hosts, peers):
        new, elder = by_rank(hosts)
        for host, value in ((new, b"new"), (elder, b"old")):
            put(host.host, b"a", value=value)
        new.host.table.waits = True
        new.host.waiting.add(new.server)
        elder.host.waiting.add(new.server)
        for at in range(2):
            rows, _ = opened(hosts, peers, at)
            assert rows.get(b"a").value == b"old"
        at = hosts.index(new)
        elder.end()
        rows, _ = opened(hosts, peers, at, patience_s=0.0)
        with pytest.raises(NoReplica):
            rows.get(b"a")
        rows, origins = opened(hosts, peers, at, allowed=STANDBYS)
        assert rows.get(b"a").value == b"new"
        [provenance] = origins.listed()
        assert (provenance.status.role, provenance.status.state) == ("STANDBY", "RESTORING")


def test_a_partition_that_is_not_there():
    with running(1) as ([one], peers):
        one.host.table.here = False
        with pytest.raises(ReadRejected) as caught:
            peers.replicas_of(one.server).read(ask())
        assert caught.value.status == MISSING


def test_a_server_that_is_starting_holds_nothing_yet():
    with running(1) as ([one], peers):
        one.context.state = "INITIALIZING"
        with pytest.raises(ReadRejected) as caught:
            peers.replicas_of(one.server).read(ask())
        assert caught.value.status == MISSING


def test_a_server_that_is_gone_is_left_alone_for_a_moment():
    with running(1) as ([one], _):
        clock = [0.0]
        peers = Peers(5.0, now_s=lambda: clock[0])
        one.end()
        for _ in range(2):
            with pytest.raises(Unreachable, match="cannot be reached"):
                peers.replicas_of(one.server).read(ask())
        again = Running([])
        try:
            peers._down[again.server] = (1.0, "gone before")
            with pytest.raises(Unreachable, match="gone before"):
                peers.replicas_of(again.server).read(ask())
            clock[0] = 1.0
            assert peers.replicas_of(again.server).read(ask()).status.state == "RUNNING"
        finally:
            again.end()
            peers.close()


def test_a_store_that_fails_on_the_way_is_no_end_of_rows():
    with running(1) as ([one], peers):
        put(one.host, *names(3_000))
        store = one.host.table.store

        def broken(lo=None, hi=None):
            yield from itertools.islice(MemoryStore.range(store, lo, hi), 2_000)
            raise StoreDamaged("there", "a block")

        store.range = broken
        result = peers.replicas_of(one.server).read(ask())
        seen = []
        with pytest.raises(Unreachable, match="a block"):
            seen += [row for some in result.rows for row in some]


def test_credentials_are_needed_and_passed_on():
    users = Users("realm", {"ann": ("secret", frozenset())})
    with running(1, users) as ([one], peers):
        with pytest.raises(Unreachable, match="401: Unauthorized"):
            peers.replicas_of(one.server).read(ask())
        good = httpx.BasicAuth("ann", "secret")
        header = next(good.auth_flow(httpx.Request("GET", "http://x"))).headers["authorization"]
        assert peers.replicas_of(one.server, header).read(ask()).status.state == "RUNNING"
        assert peers.replica_statuses(one.server, header)[HOME, 0].position == END


SECRET = ServerSecret(b"a secret of the servers")


def test_rows_are_read_by_those_that_know_the_servers_secret_only():
    """A user could read any row here, whatever pull queries are allowed."""
    users = Users("realm", {"ann": ("secret", frozenset())})
    with running(1, users, SECRET) as ([one], peers):
        assert peers.replicas_of(one.server).read(ask()).status.state == "RUNNING"
        assert peers.replica_statuses(one.server)[HOME, 0].position == END
        url, ann = f"http://{one.server}", ("ann", "secret")
        for path in paths.ONLY_SERVERS:
            answer = httpx.post(url + path, auth=ann, json={})
            assert (answer.status_code, answer.json()["error_code"]) == (403, 40300)
            assert "for the servers of the service only" in answer.json()["message"]
        assert httpx.get(f"{url}/stores/standings", auth=ann).status_code == 200
        assert httpx.get(f"{url}/stores/standings").status_code == 401
        header = {HEADER: SECRET.token("GET", "/info", str(one.server))}
        assert httpx.get(f"{url}/info", headers=header).status_code == 401


def test_a_token_is_of_no_use_elsewhere_or_later():
    with running(1, None, SECRET) as ([one], _):

        def status(secret, path="/stores/read", server=one.server, method="POST"):
            header = {HEADER: secret.token(method, path, str(server))}
            return httpx.post(f"http://{one.server}/stores/read", headers=header).status_code

        assert status(SECRET) == 400  # it is let in, and says nothing
        assert status(SECRET, server=Server("127.0.0.1", 1)) == 403
        assert status(SECRET, path="/ksql") == 403
        assert status(SECRET, method="GET") == 403
        assert status(ServerSecret(b"another")) == 403
        for drift_s, code in ((-30, 400), (30, 400), (-100, 403), (100, 403)):
            then = ServerSecret(SECRET.secret, lambda drift_s=drift_s: time.time() + drift_s)
            assert status(then) == code


@pytest.mark.parametrize(
    "token", ["", "1", "1 x y", "1 99999999999999999999 a", "2 1 a", "1 1 \xe9"]
)
def test_tokens_that_are_none(token):
    assert not SECRET.accepts(token, "POST", "/stores/read", "a:1")


def test_no_users_password_is_sent_to_a_server_that_may_not_be_one():
    """Whoever joined the servers' group in Kafka was sent it in clear."""
    seen = []

    async def stranger(scope, _receive, send):
        seen.append({name.decode() for name, _ in scope["headers"]})
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"standings": {}}'})

    with hosted(stranger) as port:
        peers = Peers(5.0, secret=SECRET)
        peers.replica_statuses(Server("127.0.0.1", port), "Basic her-password")
        peers.close()
    assert "authorization" not in seen[0]
    assert HEADER in seen[0]


@pytest.mark.parametrize(("text", "why"), [(None, "cannot be read"), ("short", "fewer than 16")])
def test_a_secret_must_be_one(tmp_path, text, why):
    path = tmp_path / "secret"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadSecret, match=why):
        ServerSecret.of(Settings({FILE: str(path)}))
    path.write_text("0123456789abcdef\n")
    assert ServerSecret.of(Settings({FILE: str(path)})).secret == b"0123456789abcdef"
    assert ServerSecret.of(Settings({})) is None


def test_a_reader_that_leaves_ends_the_read_there():
    with running(1) as ([one], peers):
        put(one.host, *names(20_000), value=bytes(1_000))
        result = peers.replicas_of(one.server).read(ask())
        assert len(next(result.rows)) > 0
        assert one.context.running == 1
        result.rows.close()
        deadline = threading.Event()
        for _ in range(200):
            if one.context.running == 0:
                break
            deadline.wait(0.05)
        assert one.context.running == 0


# --- several


def replicas(hosts, peers, at=0):
    mine = hosts[at].host
    return Replicas(mine.assignment, mine.local_replicas, peers, mine.table, Others())


def opened(hosts, peers, at=0, **reader):
    reader_ = QueryReader(**{"allowed": StalenessLimits(), "patience_s": 1.0, **reader})
    return replicas(hosts, peers, at).rows(SOURCE, 1, reader_)[0], reader_.origins


def by_rank(hosts):
    order = hosts[0].host.assignment.placement().order("T", 0)
    return sorted(hosts, key=lambda each: order.index(each.server))


def test_every_server_answers_from_the_active_copy():
    with running(3) as (hosts, peers):
        active = by_rank(hosts)[0]
        put(active.host, b"a")
        for at in range(3):
            rows, origins = opened(hosts, peers, at)
            assert rows.get(b"a") == Stored(b"v", 7)
            assert rows.get_many([b"x", b"a"]) == [None, Stored(b"v", 7)]
            [provenance] = origins.listed()
            assert (provenance.host, provenance.status.role) == (str(active.server), "ACTIVE")
        assert sum(each.host.asks for each in hosts if each is not active) == 0


def test_a_read_that_is_cut_off_continues_at_the_next_copy_behind_its_last_key():
    with running(3) as (hosts, peers):
        first, second, third = by_rank(hosts)
        keys = names(3_000)
        for each in hosts:
            put(each.host, *keys)
        store = first.host.table.store

        def broken(lo=None, hi=None):
            yield from itertools.islice(MemoryStore.range(store, lo, hi), 2_000)
            raise StoreDamaged("there", "a block")

        store.range = broken
        rows, origins = opened(hosts, peers, hosts.index(third), allowed=STANDBYS)
        assert [row.key for row in rows.scan()] == keys
        assert {each.host for each in origins.listed()} == {str(first.server), str(second.server)}


def test_standbys_answer_for_a_server_that_is_gone_only_if_they_may():
    with running(3) as (hosts, peers):
        first, second, third = by_rank(hosts)
        put(second.host, b"a")
        first.end()
        at = hosts.index(third)
        rows, _ = opened(hosts, peers, at)
        with pytest.raises(NoReplica) as caught:
            rows.get(b"a")
        assert str(first.server) in caught.value.detail
        rows, origins = opened(hosts, peers, at, allowed=STANDBYS)
        assert rows.get(b"a") == Stored(b"v", 7)
        [provenance] = origins.listed()
        assert (provenance.host, provenance.status.role) == (str(second.server), "STANDBY")
        second.host.table.part.reached = 90
        second.host.table.part.goal = 50
        third.host.table.here = False
        none = StalenessLimits(standby_reads=True, restoring=True, offset_lag=0)
        rows, _ = opened(hosts, peers, at, allowed=none, patience_s=0.0)
        with pytest.raises(NoReplica, match="exceed the maximum allowed lag") as caught:
            rows.get(b"a")
        assert "its copy is behind (lag 10" in caught.value.detail
        rows, origins = opened(hosts, peers, at, allowed=STANDBYS)
        assert rows.get(b"a") == Stored(b"v", 7)


def test_while_a_partition_moves_the_copy_that_is_left_answers_and_then_the_new_one():
    with running(2) as (hosts, peers):
        new, old = by_rank(hosts)
        put(old.host, b"a", value=b"old")
        put(new.host, b"a", value=b"new")
        new.host.table.part.reached = 40
        rows, _ = opened(hosts, peers)
        assert rows.get(b"a").value == b"old"
        new.host.table.part.reached = END
        assert rows.get(b"a").value == b"old"  # one query stays with its copy
        rows, _ = opened(hosts, peers)
        assert rows.get(b"a").value == b"new"


def test_a_query_waits_for_a_copy_that_is_nearly_there():
    with running(1) as ([one], peers):
        put(one.host, b"a")
        one.host.table.part.reached = END - 1
        waits = []

        def progress(_timeout_s):
            waits.append(1)
            one.host.table.part.reached = END

        one.host.table.await_progress = progress
        rows, _ = opened([one], peers)
        assert rows.get(b"a") == Stored(b"v", 7)
        assert waits == [1]


def test_a_position_that_is_requested_is_waited_for_and_else_refused():
    with running(1) as ([one], peers):
        put(one.host, b"a")
        rows, _ = opened([one], peers, at_least={("T", 0): END + 1}, patience_s=0.0)
        with pytest.raises(NoReplica):
            rows.get(b"a")
        rows, _ = opened([one], peers, at_least={("T", 0): END})
        assert rows.get(b"a") == Stored(b"v", 7)


def test_a_read_says_how_far_its_copy_was_when_it_had_ended():
    with running(2) as (hosts, peers):
        active = by_rank(hosts)[0]
        put(active.host, *names(3_000))
        for at in range(2):
            active.host.table.part.putting = END + at + 1  # some of it may be visible already
            rows, origins = opened(hosts, peers, at)
            rows_ = rows.scan()
            next(rows_)
            assert origins.reached() == ({}, {("T", 0)})
            assert len(list(rows_)) == 2_999
            assert origins.reached() == ({("T", 0): END + at + 1}, set())


def test_a_read_that_is_left_does_not_know_how_far_its_copy_was():
    with running(1) as ([one], peers):
        put(one.host, *names(3_000))
        rows, origins = opened([one], peers)
        assert rows.get(b"00001") is not None
        assert origins.reached() == ({("T", 0): END}, set())
        rows_ = rows.scan()
        next(rows_)
        rows_.close()
        assert origins.reached() == ({("T", 0): END}, {("T", 0)})


def test_a_copy_that_has_followed_a_token_answers_in_place_of_the_active_one():
    with running(3) as (hosts, peers):
        first, second, _third = by_rank(hosts)
        put(first.host, b"a", value=b"old")
        put(second.host, b"a", value=b"new")
        second.host.table.part.reached = END + 5
        terms = {"at_least": {("T", 0): END + 5}, "token": Token().with_({("T", 0): END + 5})}
        rows, origins = opened(hosts, peers, **terms)
        assert rows.get(b"a").value == b"new"
        assert [each.host for each in origins.listed()] == [str(second.server)]
        second.host.table.part.reached = END + 4
        rows, _ = opened(hosts, peers, patience_s=0.0, **terms)
        with pytest.raises(NoReplica, match="all that the consistency token names") as caught:
            rows.get(b"a")
        assert caught.value.code == 50301
        assert "it is at the offset 104, 105 is asked for" in caught.value.detail
        rows, _ = opened(hosts, peers, patience_s=0.0, at_least={("T", 0): END + 9})
        with pytest.raises(NoReplica, match="exceed the maximum allowed lag") as caught:
            rows.get(b"a")
        assert caught.value.code == 50302


def test_how_far_a_query_of_another_server_is():
    with running(1) as ([one], peers):
        one.host.done = {"CTAS_T_1": {"s": {0: 5, 11: 7}}}
        assert peers.processed(one.server, "CTAS_T_1", "") == ({"s": {0: 5, 11: 7}}, "")
        one.host.failure = "why"
        assert peers.processed(one.server, "a b&c", "") == ({}, "why")
        one.context.state = "INITIALIZING"
        with pytest.raises(ReadRejected):
            peers.processed(one.server, "CTAS_T_1", "")


def test_a_server_of_before_names_no_failure():
    assert processed_of({"version": 1, "processed": {"s": {"0": 5}}}) == ({"s": {0: 5}}, "")


@pytest.mark.parametrize(
    "form", [{}, {"version": 2}, {"version": 1}, {"version": 1, "processed": {"s": [1]}}]
)
def test_an_answer_about_a_query_that_is_none(form, monkeypatch):
    monkeypatch.setattr("ksql.cluster.replicas.read_request.processed_form", lambda _offsets: form)
    with running(1) as ([one], peers), pytest.raises(Unreachable, match="cannot be read"):
        peers.processed(one.server, "CTAS_T_1", "")


def windowed(host):
    """A windowed table with one window that its retention hides, and one that it does not."""
    store = RetentionStore(host.table.store, 1_000)
    host.table.part.store = store
    store.put([(window_key(b"a", 5), b"old", 5)])
    store.put([(window_key(b"a", 9_000), b"new", 9_000)])


@pytest.mark.parametrize("at", [0, 1])
def test_the_copy_that_answers_says_which_windows_it_hides(at):
    with running(2) as (hosts, peers):
        ranked = by_rank(hosts)
        windowed(ranked[0].host)
        hidden = HiddenWindows(5, 8_000, 1_000)
        rows, _ = opened(ranked, peers, at)
        assert rows.hidden() is None  # it has read nothing
        assert [row.value for row in prefixed(rows, b"a")] == [b"new"]
        assert rows.hidden() == hidden
        rows, _ = opened(ranked, peers, at)
        assert rows.get(window_key(b"a", 5)) is None
        assert rows.hidden() == hidden


# --- the routes


def service():
    return Host(Members(Server("h", 1), [Server("h", 1)]))


def test_the_standings_of_a_server():
    body = call(service(), "GET", "/stores/standings").json()
    assert body["host"] == "127.0.0.1:8088"
    assert status_of(body["standings"][HOME]["0"]) == ReplicaStatus(
        state="RUNNING", role="ACTIVE", position=END, offset_lag=0, time_lag_ms=0
    )


@pytest.mark.parametrize(
    ("query", "key"), [("", None), ("?key=a", ["a"]), ("?key=1&key=%22x%22", [1, "x"])]
)
def test_the_hosts_of_a_key(query, key):
    body = call(service(), "GET", f"/stores/T/hosts{query}").json()
    assert body == [{"table": "T", "key": key}]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"null", orjson.dumps({**ask().form(), "version": 2})]
)
def test_a_read_that_is_none(body):
    answer = call(service(), "POST", PATH, content=body)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 40000)


def test_a_read_says_what_it_is():
    answer = call(service(), "POST", PATH, content=orjson.dumps(ask(keys=[b"a"]).form()))
    assert answer.headers["content-type"] == MEDIA
    [(kind, _), (_, answers), (last, end)] = list(frames.frames([answer.content]))
    assert (kind, last) == (frames.HEAD, frames.END)
    assert frames.end_of(end).seen == END
    assert frames.stored_answers(answers) == [None]


def test_forms_of_asks_come_back_as_they_were():
    terms = ReadPolicy(
        allowed=StalenessLimits(offset_lag=1), running=False, limited=True, at_least=4
    )
    for each in (
        ask(),
        ask(keys=[b"\x00", b""], committed=True),
        ask(span=(None, b"x"), terms=terms),
    ):
        assert ReadRequest.of(each.form()) == each
