"""A task writes while its server may; it waits where that is open, and ends where it is not."""

from __future__ import annotations

import pytest

from ksql.core.process import lease
from ksql.core.process.lease import Lease, NotLeader


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 500.0
        waited = 0
        on_wait = staticmethod(lambda: None)

        def sleep(self, seconds):
            self.waited += 1
            self.now += seconds
            self.on_wait()

    clock = Clock()
    monkeypatch.setattr(lease, "now_s", lambda: clock.now)
    monkeypatch.setattr("ksql.core.process.lease.time.sleep", clock.sleep)
    return clock


@pytest.fixture
def file(tmp_path):
    return tmp_path / "lease.json"


def test_it_holds_until_its_time_and_is_not_read_again_before(clock, file):
    lease.write(file, "me", clock.now + 5)
    held = Lease(str(file), "me")
    held.await_valid()
    file.unlink()
    clock.now += 4.9
    held.await_valid()
    clock.now += 0.2
    with pytest.raises(NotLeader):
        held.await_valid()


def test_a_task_whose_right_has_run_out_waits_until_it_is_renewed(clock, file):
    lease.write(file, "me", clock.now - 1)

    def renew():
        if clock.waited == 3:
            lease.write(file, "me", clock.now + 5)

    clock.on_wait = renew
    Lease(str(file), "me").await_valid()
    assert clock.waited == 3


def test_a_task_whose_right_is_withdrawn_while_it_waits_ends(clock, file):
    lease.write(file, "me", clock.now - 1)
    clock.on_wait = lambda: lease.write(file, "me", clock.now + 5, lost=True)
    with pytest.raises(NotLeader, match="not the leader of the service any more"):
        Lease(str(file), "me").await_valid()


def test_a_task_of_a_server_that_was_followed_on_its_directory_ends(clock, file):
    lease.write(file, "next", clock.now + 5)
    with pytest.raises(NotLeader):
        Lease(str(file), "me").await_valid()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"claim": "me"}'])
def test_a_file_that_cannot_be_read_gives_no_right(clock, file, text):
    file.write_text(text)
    with pytest.raises(NotLeader):
        Lease(str(file), "me").await_valid()


@pytest.fixture
def far(clock, file, monkeypatch):
    """A server on another machine, whose clocks are anywhere; it renews once a second."""

    class OtherMachine:
        renews = True
        due = 0.0

        def write(self, until_s):
            ours, clock.now = clock.now, clock.now + 90_000
            monkeypatch.setattr(lease, "boot_id", lambda: "there")
            lease.write(file, "me", clock.now + until_s)
            monkeypatch.setattr(lease, "boot_id", lambda: "here")
            clock.now = ours

        def beat(self):
            if self.renews and clock.now >= self.due:
                self.write(8)
                self.due = clock.now + 1

    far = OtherMachine()
    far.beat()
    clock.on_wait = far.beat
    return far


@pytest.mark.parametrize("skew_s", [0, 3600, -3600])
def test_a_right_from_another_machine_needs_no_common_clock(clock, file, far, monkeypatch, skew_s):
    wall = lease.read(file).until_ms / 1000
    monkeypatch.setattr("ksql.core.process.lease.time.time", lambda: wall + skew_s)
    held = Lease(str(file), "me")
    began = clock.now
    held.await_valid()
    assert clock.now - began <= 1.2  # the next renewal was awaited
    far.renews = False
    renewed = far.due - 1

    def run_out():
        raise RunOut

    clock.on_wait = run_out
    with pytest.raises(RunOut):
        use_up(held, clock)
    assert renewed + 6 < clock.now <= renewed + 8.5


def use_up(held, clock):
    while True:
        held.await_valid()
        clock.now += 0.3


class RunOut(Exception):
    """The right ended, and would have been waited for."""


def test_such_a_right_is_renewed_without_waiting_while_it_is_used(clock, file, far):
    held = Lease(str(file), "me")
    held.await_valid()
    waited = clock.waited
    for _ in range(200):
        clock.now += 0.25
        far.beat()
        held.await_valid()
    assert clock.waited == waited
    file.unlink()
    clock.now += 1.5
    with pytest.raises(NotLeader):
        held.await_valid()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"claim": 7}'])
def test_a_right_that_cannot_be_read_names_its_file(tmp_path, text):
    file = tmp_path / "lease.json"
    file.write_text(text)
    with pytest.raises(NotLeader) as caught:
        Lease(str(file), "c").await_valid()
    assert str(file) in caught.value.detail
