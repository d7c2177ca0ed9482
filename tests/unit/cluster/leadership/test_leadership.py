"""One server at a time leads, whoever starts when, and however long one of them slept."""

from __future__ import annotations

import errno
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from ksql.cluster.leadership import leadership as module
from ksql.cluster.leadership.leadership import (
    BEAT_S,
    LEASE_S,
    SILENCE_S,
    AnotherServer,
    Leadership,
)
from ksql.core.error_table import LEASE_UNWRITABLE
from ksql.core.process import lease
from ksql.core.process.lease import NotLeader
from ksql.kafka.errors import KafkaUnreachable, ProducerFenced
from ksql.kafka.leadership_log import LeadershipRecord, decode


class Topic:
    """What the brokers keep: the claims, and who took the right to write them last."""

    def __init__(self):
        self.claims = []
        self.epoch = 0
        self.away = False


class Log:
    """One server's view of the topic."""

    def __init__(self, topic):
        self._topic = topic
        self._epoch = None
        self.before_append = lambda: None

    def _ask(self):
        if self._topic.away:
            raise KafkaUnreachable("kafka:9092", "it is away")

    def end(self):
        self._ask()
        return len(self._topic.claims)

    def last(self):
        self._ask()
        return self._topic.claims[-1] if self._topic.claims else None

    def acquire(self):
        self._ask()
        self._topic.epoch += 1
        self._epoch = self._topic.epoch

    def append(self, claim):
        self.before_append()
        self._ask()
        if self._epoch != self._topic.epoch:
            raise ProducerFenced("claims")
        self._topic.claims.append(claim)

    def close(self):
        self._epoch = None


class World:
    """A clock that moves when somebody sleeps; others live on meanwhile."""

    def __init__(self, folder):
        self.folder = folder
        self.topic = Topic()
        self.now = 1000.0
        self.slept = 0.0
        self.living = []
        self.lost = {}
        self.logs = {}

    def sleep(self, seconds):
        self.slept += seconds
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + BEAT_S)
            for server in self.living:
                server.beat()

    def server(self, name, *, state=None, host="here", state_id=None, place="", gives_way=False):
        state = state or name
        folder = self.folder / state
        folder.mkdir(exist_ok=True)
        me = LeadershipRecord(
            id=name,
            host=host,
            pid=7,
            state_dir=str(folder),
            state_id=state_id or f"id of {state}",
            since_ms=0,
            place=place,
        )
        self.logs[name] = Log(self.topic)
        return Leadership(
            self.logs[name],
            me,
            "svc",
            folder / "lease.json",
            on_lost=lambda reason: self.lost.__setitem__(name, reason),
            gives_way=gives_way,
            sleep=self.sleep,
            now_s=lambda: self.now,
        )

    def may_write(self, name, state=None):
        content = lease.read(self.folder / (state or name) / "lease.json")
        return content is not None and content.claim == name and content.left_s() > 0

    def await_void(self):
        self.sleep(SILENCE_S + 1)


@pytest.fixture
def world(tmp_path, monkeypatch):
    world = World(tmp_path)
    monkeypatch.setattr(lease, "now_s", lambda: world.now)
    return world


def test_the_first_one_leads_at_once(world):
    one = world.server("one")
    one.acquire()
    assert world.may_write("one")
    assert world.slept == 0


def test_second_server_is_refused_and_shown_the_first(world):
    one = world.server("one", host="elsewhere")
    one.acquire()
    world.living.append(one)
    with pytest.raises(AnotherServer) as caught:
        world.server("two").acquire()
    assert 'the leader of the service "svc"' in caught.value.message
    assert f"host elsewhere as process 7, with the state directory {world.folder / 'one'}" in (
        caught.value.detail
    )
    assert world.lost == {}
    assert world.slept < 2 * BEAT_S


def test_refused_server_knows_the_leader_at_once(world):
    one, two = world.server("one", host="elsewhere"), world.server("two")
    one.acquire()
    world.living.append(one)
    with pytest.raises(AnotherServer):
        two.acquire()
    known = [(two.holder().id, two.responsive())]
    world.sleep(SILENCE_S + 1)  # its start takes long

    class Stop:
        def wait(self, _seconds):
            known.append((two.holder().id, two.responsive()))
            return True

    assert not two.await_leadership(Stop(), lambda _: 0)
    assert known == [("one", True)] * 2


def test_leader_that_ended_in_order_is_followed_at_once(world):
    one = world.server("one")
    one.acquire()
    one.close()
    assert not world.may_write("one")
    world.server("two").acquire()
    assert world.may_write("two")
    assert world.slept == 0


def test_leader_killed_elsewhere_is_followed_once_its_claim_expires(world):
    world.server("one").acquire()
    world.server("two").acquire()
    assert world.slept == pytest.approx(SILENCE_S)
    assert not world.may_write("one")
    assert world.may_write("two")


def test_a_server_killed_and_started_again_on_its_directory_waits_for_its_last_tasks_only(world):
    world.server("one", state="same").acquire()
    world.now += 3
    world.server("two", state="same").acquire()
    assert world.slept == pytest.approx(LEASE_S - 3)
    assert world.may_write("two", "same")
    assert not world.may_write("one", "same")


def test_a_directory_that_was_copied_is_another_one(world, tmp_path):
    one = world.server("one")
    one.acquire()
    world.living.append(one)
    copy = world.server("two", state_id="id of one")
    with pytest.raises(AnotherServer, match="another server is the leader"):
        copy.acquire()


def test_a_copy_on_a_machine_of_the_same_name_is_another_one(world):
    one = world.server("one", state="same", place="boot 1:5:7")
    one.acquire()
    world.living.append(one)
    copy = world.server("two", state="same", place="boot 2:5:7")
    with pytest.raises(AnotherServer) as refused:
        copy.acquire()
    assert "is a copy of that one" in refused.value.detail
    world.living.clear()
    again = world.server("three", state="same", place="boot 1:5:7")
    slept = world.slept
    again.acquire()
    assert world.slept - slept <= LEASE_S  # its own tasks only


def test_a_paused_one_may_not_write_on_and_learns_that_it_was_followed(world):
    one = world.server("one")
    one.acquire()
    two = world.server("two")
    two.acquire()
    world.living.append(two)
    assert not world.may_write("one")
    one.beat()  # it wakes up
    assert "host here, process 7" in world.lost["one"]
    with pytest.raises(NotLeader):
        one.lease.await_valid()
    one.beat()
    assert world.topic.claims[-1].id == "two"
    two.beat()
    assert world.may_write("two")
    assert list(world.lost) == ["one"]


def full(*_args, **_kwargs):
    """Refuse, as a full disk does."""
    raise OSError(errno.ENOSPC, "No space left on device")


def followed(world):
    """Give a leader that another one has followed, unnoticed."""
    one = world.server("one")
    one.acquire()
    world.await_void()
    world.server("two").acquire()
    return one


@pytest.mark.parametrize("how", ["beat", "confirm"])
def test_a_followed_leader_gives_up_on_a_full_disk_too(world, monkeypatch, how):
    one = followed(world)
    monkeypatch.setattr(Path, "write_text", full)
    with nullcontext() if how == "beat" else pytest.raises(NotLeader):
        getattr(one, how)()
    assert list(world.lost) == ["one"]
    with pytest.raises(NotLeader):
        one.lease.await_valid()
    assert world.may_write("two")


def test_a_leader_that_ends_on_a_full_disk_is_followed_at_once(world, monkeypatch):
    one = world.server("one")
    one.acquire()
    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", full)
        one.close()
    assert not world.may_write("one")
    world.server("two").acquire()
    assert world.slept == 0


def test_a_followed_leader_gives_up_where_its_lease_cannot_be_touched(world, monkeypatch, caplog):
    one = followed(world)
    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(Path, "unlink", full)
    one.beat()
    assert list(world.lost) == ["one"]
    assert [record.message for record in caplog.records] == ["lease_not_withdrawn"]
    assert not world.may_write("one")  # it has run out


def test_a_leader_whose_lease_cannot_be_touched_does_not_give_the_service_free(world, monkeypatch):
    """Its tasks may write until their right runs out."""
    one = world.server("one")
    one.acquire()
    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", full)
        disk.setattr(Path, "unlink", full)
        one.close()
    assert world.may_write("one")
    world.server("two").acquire()
    assert world.slept == pytest.approx(SILENCE_S)


def unwritable(monkeypatch, *servers):
    """Let these servers' leases be written no more, as on a disk that became read-only."""
    write = Path.write_text
    closed = {server._file.parent for server in servers}

    def refused(path, *args, **kwargs):
        if path.parent in closed:
            raise OSError(errno.EROFS, "Read-only file system")
        return write(path, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", refused)


@pytest.mark.parametrize("removable", [True, False])
def test_a_leader_that_cannot_renew_its_lease_lets_others_lead(
    world, monkeypatch, caplog, removable
):
    one = world.server("one", gives_way=True)
    one.acquire()
    world.living.append(one)
    unwritable(monkeypatch, one)
    if not removable:
        monkeypatch.setattr(Path, "unlink", full)
    world.sleep(LEASE_S - BEAT_S)
    assert world.lost == {}  # the disk may recover as long as the right lasts
    world.sleep(2 * BEAT_S)
    assert "Read-only file system" in world.lost["one"]
    assert one.problem == world.lost["one"]
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "leadership_given_up"
    ]
    assert world.topic.claims[-1].released is removable
    began = len(world.topic.claims)
    world.server("two").acquire()
    assert [claim.id for claim in world.topic.claims[began:]] == ["two"]
    assert world.may_write("two")
    assert not world.may_write("one")


def test_a_leader_without_others_says_why_its_tasks_wait_and_continues(world, monkeypatch, caplog):
    one = world.server("one")
    one.acquire()
    world.living.append(one)
    with monkeypatch.context() as disk:
        unwritable(disk, one)
        world.sleep(3 * LEASE_S)
        assert "Read-only file system" in one.problem
        assert not world.may_write("one")
    world.sleep(BEAT_S)
    assert one.problem == ""
    assert world.may_write("one")
    assert world.lost == {}
    errors = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert errors == ["lease_not_renewed"]


def test_a_server_that_cannot_write_its_lease_claims_nothing(world, monkeypatch):
    """It is started again and again; a claim at each start would keep all others from leading."""
    one = world.server("one")
    unwritable(monkeypatch, one)
    with pytest.raises(LEASE_UNWRITABLE.base, match="cannot be written"):
        one.acquire()
    assert world.topic.claims == []
    world.server("two").acquire()
    assert world.slept == 0


def test_fenced_while_it_takes_over_yields_to_the_other(world):
    one, two = world.server("one"), world.server("two")
    acquire = world.logs["one"].acquire

    def fenced():
        world.logs["one"].acquire = acquire
        two.acquire()
        world.living.append(two)
        raise ProducerFenced("claims")

    world.logs["one"].acquire = fenced
    with pytest.raises(AnotherServer):
        one.acquire()
    assert world.may_write("two")


def test_a_paused_one_that_nobody_followed_continues(world):
    one = world.server("one")
    one.acquire()
    world.now += 3600
    world.topic.epoch += 1  # the brokers gave its open transaction up
    assert not world.may_write("one")
    one.beat()
    assert world.may_write("one")
    assert world.lost == {}


def test_an_outage_of_kafka_ends_nobody(world):
    one = world.server("one")
    one.acquire()
    world.topic.away = True
    for _ in range(20):
        world.now += BEAT_S
        one.beat()
    assert not world.may_write("one")
    world.topic.away = False
    one.beat()  # what was begun before the outage
    one.beat()
    assert world.may_write("one")
    assert world.lost == {}


def test_a_claim_whose_answer_was_lost_gives_no_right_beyond_its_first_try(world):
    one = world.server("one")
    one.acquire()
    append = world.logs["one"].append

    def unanswered(claim):
        append(claim)
        raise KafkaUnreachable("kafka:9092", "no answer")

    world.logs["one"].append = unanswered
    one.beat()
    world.now += LEASE_S + 1  # others see nothing new since
    world.logs["one"].append = append
    one.beat()
    assert not world.may_write("one")
    one.beat()
    assert world.may_write("one")


def test_a_directory_that_cannot_be_written_is_reported(world):
    one = world.server("one")
    (world.folder / "one").rmdir()
    with pytest.raises(LEASE_UNWRITABLE.base, match="cannot be written"):
        one.acquire()


def test_a_broker_that_is_slow_at_the_start_is_waited_for(world):
    one = world.server("one")
    tries = []

    def slow():
        tries.append(world.now)
        if len(tries) < 4:
            raise KafkaUnreachable("kafka:9092", "it still loads")

    world.logs["one"].before_append = slow
    one.acquire()
    assert len(tries) == 4
    assert world.may_write("one")


def claims_first(world, name, other):
    """Let that server claim between the other one's look and its taking."""
    first, log = world.server(name), world.logs[other]
    acquire = log.acquire

    def after_the_first():
        log.acquire = acquire
        first.acquire()
        acquire()

    log.acquire = after_the_first
    return first


def test_of_two_that_start_at_the_same_instant_the_later_one_gives_way(world):
    two = world.server("two")
    one = claims_first(world, "one", "two")
    world.living.append(one)
    with pytest.raises(AnotherServer) as caught:
        two.acquire()
    assert caught.value.claim.id == "one"
    world.sleep(BEAT_S)
    assert world.lost == {}
    assert world.may_write("one")
    assert not world.may_write("two")


def test_confirms_leadership_after_rival_yields(world):
    """It learns so before its next claim is due."""
    two = world.server("two")
    one = claims_first(world, "one", "two")
    assert two._contend(0) is False
    one.confirm()
    assert world.lost == {}
    assert world.may_write("one")


def test_followed_leader_has_lost_its_leadership(world):
    one = world.server("one")
    one.acquire()
    world.await_void()
    world.server("two").acquire()
    with pytest.raises(NotLeader):
        one.confirm()
    assert list(world.lost) == ["one"]


def test_rival_that_won_and_died_is_followed(world):
    two = world.server("two")
    claims_first(world, "one", "two")
    two.acquire()
    assert world.slept >= SILENCE_S
    assert world.may_write("two")
    assert not world.may_write("one")


def test_of_two_that_start_at_the_same_instant_the_earlier_one_is_refused(world):
    """The other one takes over between our taking and our claim."""
    one, two = world.server("one"), world.server("two")

    def the_other_is_quicker():
        world.logs["one"].before_append = lambda: None
        two.acquire()
        world.living.append(two)

    world.logs["one"].before_append = the_other_is_quicker
    with pytest.raises(AnotherServer):
        one.acquire()
    assert world.may_write("two")
    assert world.lost == {}


def test_fenced_by_a_rival_that_dies_before_its_claim_takes_over_again(world):
    one = world.server("one")

    def somebody_takes_and_dies():
        world.logs["one"].before_append = lambda: None
        world.topic.epoch += 1

    world.logs["one"].before_append = somebody_takes_and_dies
    one.acquire()
    assert world.may_write("one")


def test_fenced_server_does_not_release_the_leadership_of_another(world):
    one = world.server("one")
    one.acquire()
    world.server("two").acquire()
    one.beat()
    one.close()
    assert [claim.id for claim in world.topic.claims] == ["one", "two"]


def test_every_claim_names_the_queries_that_do_not_run(world):
    one = world.server("one")
    one.acquire()
    one.troubled = lambda: {"CTAS_T_4": "ERROR"}
    one.beat()
    one.confirm()
    troubled = (("CTAS_T_4", "ERROR"),)
    assert [claim.troubled for claim in world.topic.claims] == [(), troubled, troubled]
    assert one.holder().troubled == troubled


def test_a_claim_survives_the_way_through_kafka():
    claim = LeadershipRecord(
        id="a", host="host", pid=7, state_dir="/state", state_id="id", since_ms=123, released=True
    )
    assert decode(claim.encode()) == claim
    several = replace(
        claim, listener="host:8088", troubled=(("CTAS_T_4", "ERROR"),), place="boot:1:2"
    )
    assert decode(several.encode()) == several


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b"null", b'{"format": 9}'])
def test_a_claim_that_cannot_be_read_is_somebodys(world, value):
    claim = decode(value)
    assert not claim.released
    world.topic.claims.append(claim)
    world.server("one").acquire()
    assert world.slept == pytest.approx(SILENCE_S)


def test_a_lease_ends_before_a_claim_is_void():
    assert module.LEASE_S + BEAT_S <= module.SILENCE_S
