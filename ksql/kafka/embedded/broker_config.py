"""The settings of the embedded broker: small, quick to start, and keeping old event times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

_FOREVER = str(2**63 - 1)
AFTER_MAX_MS: Final = 9_200_000_000_000_000
"""How far ahead of now a record's time may lie: no query can read one beyond ``LATEST_MS``."""

_FIXED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "auto.create.topics.enable": "false",
    # one node: every internal topic has one replica
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # event times are the data's own, decades old or ahead: they neither expire nor are refused,
    # unless they are so late that they would end each query over their topic
    "log.retention.ms": "-1",
    "log.retention.bytes": "-1",
    "log.roll.hours": "8760",
    "log.message.timestamp.before.max.ms": _FOREVER,
    "log.message.timestamp.after.max.ms": str(AFTER_MAX_MS),
    # an exactly-once query keeps its position as a group's offset, also while it is stopped
    "offsets.retention.minutes": str(2**31 - 1),
    "message.max.bytes": str(8 << 20),
    # answers at once
    "group.initial.rebalance.delay.ms": "0",
    # few threads and small buffers
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "num.recovery.threads.per.data.dir": "2",
    "group.coordinator.threads": "1",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": str(16 << 20),
    "log.index.size.max.bytes": str(2 << 20),
    "metric.reporters": "",
}


def server_properties(data: Path, port: int, controller_port: int) -> str:
    """Return the text of ``server.properties``: both listeners on the loopback interface only."""
    broker = f"127.0.0.1:{port}"
    controller = f"127.0.0.1:{controller_port}"
    settings = _FIXED | {
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{broker}",
        "controller.quorum.voters": f"1@{controller}",
        "log.dirs": str(data),
    }
    return properties_text(settings)


def log_properties(file: Path) -> str:
    """Return the text of ``log4j2.properties``: warnings and worse into one rolling file."""
    settings = {
        "appender.file.type": "RollingFile",
        "appender.file.name": "file",
        "appender.file.fileName": str(file),
        "appender.file.filePattern": f"{file}.%i",
        "appender.file.layout.type": "PatternLayout",
        "appender.file.layout.pattern": "%d %p %c{1}: %m%n",
        "appender.file.policies.type": "Policies",
        "appender.file.policies.size.type": "SizeBasedTriggeringPolicy",
        "appender.file.policies.size.size": "10MB",
        "appender.file.strategy.type": "DefaultRolloverStrategy",
        "appender.file.strategy.max": "2",
        "rootLogger.level": "WARN",
        "rootLogger.appenderRef.file.ref": "file",
    }
    return properties_text(settings)


def java_options(heap_mb: int, log_settings: Path) -> list[str]:
    """Return the options of a small server JVM that is up soon.

    One collector thread, one compiler.
    """
    return [
        "-Xms64m",
        f"-Xmx{heap_mb}m",
        "-Xss512k",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
        "-XX:-UsePerfData",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:MaxDirectMemorySize=128m",
        "-Djdk.nio.maxCachedBufferSize=262144",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={log_settings}",
    ]


def properties_text(settings: Mapping[str, str]) -> str:
    """Return the text of a properties file, as Java reads it, a line for each setting.

    A backslash stands for itself only doubled, and a line's end is written as a letter.
    """
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
