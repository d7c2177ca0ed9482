"""The brake on guesses: who waits, how long, and that its memory is bounded."""

from __future__ import annotations

import pytest

from server.guesses import FORGOTTEN_S, FREE, FREE_OF_ADDRESS, LONGEST_S, MOST, Brake


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def brake(clock: Clock) -> Brake:
    return Brake(clock)


def guess(brake: Brake, name: str, address: str, times: int = 1) -> int:
    """How many of the wrong passwords were looked at."""
    looked = 0
    for _ in range(times):
        if brake.refusal(name, address) is None:
            brake.wrong(name, address)
            looked += 1
    return looked


def test_the_wait_grows_up_to_a_minute(brake: Brake, clock: Clock) -> None:
    assert guess(brake, "ada", "192.0.2.1", 1_000) == FREE
    waits = []
    for _ in range(9):
        refused = brake.refusal("ada", "192.0.2.1")
        assert refused is not None
        waits.append(refused.wait_s)
        clock.now += refused.wait_s
        assert guess(brake, "ada", "192.0.2.1", 1_000) == 1
    assert waits == [1, 2, 4, 8, 16, 32, LONGEST_S, LONGEST_S, LONGEST_S]
    last = brake.refusal("ada", "192.0.2.1")
    assert last is not None
    assert last.code == 42900
    assert "60 seconds" in last.text()


def test_the_true_user_elsewhere_does_not_wait(brake: Brake) -> None:
    guess(brake, "ada", "192.0.2.1", 1_000)
    assert brake.refusal("ada", "192.0.2.2") is None
    assert brake.refusal("ada", "192.0.2.1") is not None


def test_a_network_of_ipv6_is_one_place(brake: Brake) -> None:
    guess(brake, "ada", "2001:db8:1:2::1", FREE)
    assert brake.refusal("ada", "2001:db8:1:2:ffff::9") is not None
    assert brake.refusal("ada", "2001:db8:1:3::1") is None
    guess(brake, "ada", "::ffff:192.0.2.7", FREE)
    assert brake.refusal("ada", "192.0.2.7") is not None


def test_many_names_from_one_address_wait_too(brake: Brake) -> None:
    brake.right("bob", "192.0.2.1")
    looked = sum(guess(brake, f"user{n}", "192.0.2.1") for n in range(1_000))
    assert looked == FREE_OF_ADDRESS
    assert brake.refusal("ada", "192.0.2.1") is not None
    assert brake.refusal("bob", "192.0.2.1") is None  # who has signed in there before
    assert brake.refusal("ada", "192.0.2.2") is None


def test_a_right_password_forgives_its_own_name_only(brake: Brake) -> None:
    for _ in range(FREE_OF_ADDRESS):
        guess(brake, "ada", "192.0.2.1", FREE - 1)
        brake.right("ada", "192.0.2.1")
    assert brake.refusal("ada", "192.0.2.1") is None
    assert brake.refusal("bob", "192.0.2.1") is not None


def test_guesses_of_a_quarter_of_an_hour_ago_are_forgotten(brake: Brake, clock: Clock) -> None:
    guess(brake, "ada", "192.0.2.1", FREE)
    clock.now += FORGOTTEN_S + 1
    assert guess(brake, "ada", "192.0.2.1", 10) == FREE


def test_what_was_not_looked_at_is_counted(brake: Brake, clock: Clock) -> None:
    guess(brake, "ada", "192.0.2.1", FREE + 7)
    clock.now += 1.0
    assert brake.wrong("ada", "192.0.2.1") == 7


def test_memory_is_bounded(brake: Brake) -> None:
    for n in range(3 * MOST):
        address = f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}"
        brake.wrong("x" * 1_000, address)
        brake.right("y", address)
    assert brake.size == 3 * MOST


def test_a_long_name_is_kept_short(brake: Brake) -> None:
    names = ["x" * 100_000, "x" * 99_999, "x"]
    guess(brake, names[0], "192.0.2.1", FREE)
    waits = [brake.refusal(name, "192.0.2.1") is not None for name in names]
    assert waits == [True, False, False]


@pytest.mark.parametrize("address", ["", "unix", "fe80::1%eth0", "not:an:address"])
def test_odd_addresses(brake: Brake, address: str) -> None:
    assert guess(brake, "\udc80", address, 100) == FREE
