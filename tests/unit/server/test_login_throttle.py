"""The throttle on guesses: who waits, how long, and that its memory is bounded."""

from __future__ import annotations

import pytest

from server.login_throttle import FORGOTTEN_S, FREE, FREE_OF_ADDRESS, LONGEST_S, MOST, LoginThrottle


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def throttle(clock: Clock) -> LoginThrottle:
    return LoginThrottle(clock)


def guess(throttle: LoginThrottle, name: str, address: str, times: int = 1) -> int:
    """How many of the wrong passwords were looked at."""
    looked = 0
    for _ in range(times):
        if throttle.refusal(name, address) is None:
            throttle.wrong(name, address)
            looked += 1
    return looked


def test_the_wait_grows_up_to_a_minute(throttle: LoginThrottle, clock: Clock) -> None:
    assert guess(throttle, "ada", "192.0.2.1", 1_000) == FREE
    waits = []
    for _ in range(9):
        refused = throttle.refusal("ada", "192.0.2.1")
        assert refused is not None
        waits.append(refused.wait_s)
        clock.now += refused.wait_s
        assert guess(throttle, "ada", "192.0.2.1", 1_000) == 1
    assert waits == [1, 2, 4, 8, 16, 32, LONGEST_S, LONGEST_S, LONGEST_S]
    last = throttle.refusal("ada", "192.0.2.1")
    assert last is not None
    assert last.code == 42900
    assert "60 seconds" in last.text()


def test_the_true_user_elsewhere_does_not_wait(throttle: LoginThrottle) -> None:
    guess(throttle, "ada", "192.0.2.1", 1_000)
    assert throttle.refusal("ada", "192.0.2.2") is None
    assert throttle.refusal("ada", "192.0.2.1") is not None


def test_a_network_of_ipv6_is_one_place(throttle: LoginThrottle) -> None:
    guess(throttle, "ada", "2001:db8:1:2::1", FREE)
    assert throttle.refusal("ada", "2001:db8:1:2:ffff::9") is not None
    assert throttle.refusal("ada", "2001:db8:1:3::1") is None
    guess(throttle, "ada", "::ffff:192.0.2.7", FREE)
    assert throttle.refusal("ada", "192.0.2.7") is not None


def test_many_names_from_one_address_wait_too(throttle: LoginThrottle) -> None:
    throttle.right("bob", "192.0.2.1")
    looked = sum(guess(throttle, f"user{n}", "192.0.2.1") for n in range(1_000))
    assert looked == FREE_OF_ADDRESS
    assert throttle.refusal("ada", "192.0.2.1") is not None
    assert throttle.refusal("bob", "192.0.2.1") is None  # who has signed in there before
    assert throttle.refusal("ada", "192.0.2.2") is None


def test_a_right_password_forgives_its_own_name_only(throttle: LoginThrottle) -> None:
    for _ in range(FREE_OF_ADDRESS):
        guess(throttle, "ada", "192.0.2.1", FREE - 1)
        throttle.right("ada", "192.0.2.1")
    assert throttle.refusal("ada", "192.0.2.1") is None
    assert throttle.refusal("bob", "192.0.2.1") is not None


def test_guesses_of_a_quarter_of_an_hour_ago_are_forgotten(
    throttle: LoginThrottle, clock: Clock
) -> None:
    guess(throttle, "ada", "192.0.2.1", FREE)
    clock.now += FORGOTTEN_S + 1
    assert guess(throttle, "ada", "192.0.2.1", 10) == FREE


def test_what_was_not_looked_at_is_counted(throttle: LoginThrottle, clock: Clock) -> None:
    guess(throttle, "ada", "192.0.2.1", FREE + 7)
    clock.now += 1.0
    assert throttle.wrong("ada", "192.0.2.1") == 7


def test_memory_is_bounded(throttle: LoginThrottle) -> None:
    for n in range(3 * MOST):
        address = f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}"
        throttle.wrong("x" * 1_000, address)
        throttle.right("y", address)
    assert throttle.size == 3 * MOST


def test_a_long_name_is_kept_short(throttle: LoginThrottle) -> None:
    names = ["x" * 100_000, "x" * 99_999, "x"]
    guess(throttle, names[0], "192.0.2.1", FREE)
    waits = [throttle.refusal(name, "192.0.2.1") is not None for name in names]
    assert waits == [True, False, False]


@pytest.mark.parametrize("address", ["", "unix", "fe80::1%eth0", "not:an:address"])
def test_odd_addresses(throttle: LoginThrottle, address: str) -> None:
    assert guess(throttle, "\udc80", address, 100) == FREE
