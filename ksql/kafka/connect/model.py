"""Connectors, their tasks and their classes, as Kafka Connect's REST interface describes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ksql.core import HIDDEN, is_secret, without_secrets

Config = Mapping[str, str]
"""The configuration of a connector."""

CLASS: Final = "connector.class"
RUNNING: Final = "RUNNING"
CREATE_TOPICS: Final[Config] = {
    f"topic.creation.default.{name}": "-1" for name in ("partitions", "replication.factor")
}
"""A source makes its topics, with the broker's own defaults."""


UNREACHABLE: Final = frozenset({"", ".", ".."})
"""Names that mean another path in the place of a connector's."""


def masked(text: str, config: Config) -> str:
    """Return a text of Kafka Connect's without the secrets of a configuration, and of URLs."""
    for name, value in config.items():
        if is_secret(name) and value:
            for written in (json.dumps(value)[1:-1], value):
                text = text.replace(written, HIDDEN)
    return without_secrets(text)


class NotThatForm(Exception):
    """An answer that is not of the form that Kafka Connect gives."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A class of connectors that a worker has; ``type`` is source or sink."""

    class_name: str
    type: str
    version: str

    @property
    def names(self) -> frozenset[str]:
        """All names by which ``connector.class`` may mean it: Connect takes short ones, too."""
        simple = self.class_name.rpartition(".")[2]
        pruned = simple.removesuffix("Connector")
        pruned = pruned.removesuffix("Sink" if self.type == "sink" else "Source") or pruned
        return frozenset({self.class_name, simple, simple.removesuffix("Connector"), pruned})


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The state of one task; ``trace`` is that of its error."""

    id: int
    state: str
    worker_id: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """The state of a connector and of its tasks."""

    name: str
    state: str
    worker_id: str
    trace: str
    tasks: tuple[TaskStatus, ...]
    type: str

    def summary(self) -> str:
        """Return it in short, as ``RUNNING (1/2 tasks RUNNING)``; WARNING if no task runs."""
        if self.state != RUNNING:
            return self.state
        running = sum(task.state == RUNNING for task in self.tasks)
        word = RUNNING if running else "WARNING"
        return f"{word} ({running}/{len(self.tasks)} tasks RUNNING)"


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    """A connector with its configuration; ``tasks`` are their numbers."""

    name: str
    config: Config
    tasks: tuple[int, ...]
    type: str

    def masked(self, text: str) -> str:
        """Return a text about it, such as a trace, without its secrets."""
        return masked(text, self.config)


@dataclass(frozen=True, slots=True)
class Listed:
    """A connector of a list; the status of one that has just been made is not known yet."""

    info: ConnectorInfo
    status: ConnectorStatus | None


def plugin_of(form: Any) -> Plugin:
    """Read a member of ``/connector-plugins``.

    Raises: NotThatForm.
    """
    try:
        return Plugin(str(form["class"]), str(form["type"]), str(form.get("version") or ""))
    except (KeyError, TypeError, AttributeError) as error:
        raise NotThatForm from error


def info_of(form: Any) -> ConnectorInfo:
    """Read the answer of ``/connectors/{name}``.

    Raises: NotThatForm.
    """
    try:
        config = {str(name): str(value) for name, value in form["config"].items()}
        tasks = tuple(int(task["task"]) for task in form["tasks"])
        return ConnectorInfo(str(form["name"]), config, tasks, str(form.get("type") or "unknown"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotThatForm from error


def status_of(form: Any) -> ConnectorStatus:
    """Read the answer of ``/connectors/{name}/status``.

    Raises: NotThatForm.
    """
    try:
        connector = form["connector"]
        tasks = sorted((_task(task) for task in form["tasks"]), key=lambda task: task.id)
        return ConnectorStatus(
            str(form["name"]),
            str(connector["state"]),
            str(connector["worker_id"]),
            str(connector.get("trace") or "").strip(),
            tuple(tasks),
            str(form.get("type") or "unknown"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotThatForm from error


def _task(form: Any) -> TaskStatus:
    trace = str(form.get("trace") or "").strip()
    return TaskStatus(int(form["id"]), str(form["state"]), str(form["worker_id"]), trace)


def problems_of(form: Any) -> tuple[str, ...]:
    """Read the answer of a validation: what is wrong, as ``name - reason; reason``.

    Raises: NotThatForm.
    """
    try:
        values = [member["value"] for member in form["configs"]]
        return tuple(
            f"{value['name']} - {'; '.join(map(str, value['errors']))}"
            for value in values
            if value["errors"]
        )
    except (KeyError, TypeError) as error:
        raise NotThatForm from error


def topics_of(form: Any, name: str) -> tuple[str, ...]:
    """Read the answer of ``/connectors/{name}/topics``, sorted.

    Raises: NotThatForm.
    """
    try:
        return tuple(sorted(map(str, form[name]["topics"])))
    except (KeyError, TypeError) as error:
        raise NotThatForm from error


def known_topics(config: Config, active: tuple[str, ...]) -> tuple[str, ...]:
    """Return the topics of a connector: those that it has used, and those that it names.

    One that has handled nothing yet has used none.
    """
    named = [
        topic.strip()
        for name in ("topic", "topics", "kafka.topic")
        for topic in config.get(name, "").split(",")
        if topic.strip()
    ]
    return tuple(sorted({*active, *named}))
