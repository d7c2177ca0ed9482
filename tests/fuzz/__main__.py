"""`python -m tests.fuzz [--seconds N] [--seed N] [parser|serdes|functions|rest ..]`.

Whatever is read, only the errors that are meant for it may come out, and in good time.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable

from tests.fuzz import commands, functions, parser, registry, rest, serdes

SECONDS = 600.0
LONGEST_S = 1.0  # of CPU, for one input

Try = Callable[[random.Random], tuple[object, Callable[[], bool]]]
"""An input, and what reads it and tells whether it was good: all that it raises is a finding."""

TARGETS: dict[str, Try] = {
    "parser": parser.attempt,
    "serdes": serdes.attempt,
    "functions": functions.attempt,
    "commands": commands.attempt,
    "rest": rest.attempt,
    "registry": registry.attempt,
}


def main() -> int:
    """Try until the time is over; the findings are printed, with what repeats them."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzz")
    options.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    options.add_argument("--seconds", type=float, default=SECONDS, help="for each target")
    options.add_argument("--seed", type=int, default=time.time_ns())
    given = options.parse_args()
    if unknown := set(given.targets) - set(TARGETS):
        options.error(f"unknown targets: {', '.join(sorted(unknown))}")
    failures = 0
    for name in given.targets or TARGETS:
        failures += run(name, TARGETS[name], given.seed, given.seconds)
    return 1 if failures else 0


def run(name: str, target: Try, seed: int, seconds: float) -> int:
    """How many findings a target has."""
    chance, until = random.Random(seed), time.monotonic() + seconds
    tries, good, failures, slowest = 0, 0, 0, 0.0
    while time.monotonic() < until:
        tries += 1
        given, read = target(chance)
        began = time.process_time()
        try:
            good += read()
        except Exception as error:  # noqa: BLE001 - any is a finding
            failures += 1
            _say(f"{name}: {type(error).__name__}: {error}\n  input {given!r}")
        took = time.process_time() - began
        slowest = max(slowest, took)
        if took > LONGEST_S:
            failures += 1
            _say(f"{name}: took {took:.1f} s\n  input {given!r}")
    _say(
        f"{name}: {tries} inputs, {good} of them good, {failures} findings, "
        f"slowest {slowest:.3f} s, seed {seed}"
    )
    return failures


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    sys.exit(main())
