"""Brokers that are set up unlike the service's own."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from ksql.kafka.embedded import broker as module
from ksql.kafka.embedded.broker import EmbeddedBroker
from ksql.kafka.embedded.broker_config import server_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@contextlib.contextmanager
def adapted_broker(
    folder: Path, adapt: Callable[[dict[str, str]], None]
) -> Iterator[EmbeddedBroker]:
    """A running broker whose settings ``adapt`` changes before each start."""

    def adapted(data: Path, port: int, controller_port: int) -> str:
        lines = server_properties(data, port, controller_port).splitlines()
        settings = dict(line.split("=", 1) for line in lines)
        adapt(settings)
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "server_properties", adapted)
        with EmbeddedBroker(folder) as running:
            yield running


def make_what_is_asked_for(settings: dict[str, str]) -> None:
    """Kafka's default, which is many users' setting: a topic that a client asks for is made."""
    settings["auto.create.topics.enable"] = "true"
