"""The names of ksqlDB's configuration are known; what has no effect says so and ends nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksql.control.statements.entities import WarningEntity
from ksql.core.config import PROPERTIES, UnknownProperty, canonical, check
from server.settings import odd_properties, read_configuration
from tests.unit.world import World


def words(*texts: str) -> list[str]:
    return " ".join(texts).split()


PAGE = words(
    "compression.type ksql.advertised.listener ksql.assert.schema.default.timeout.ms "
    "ksql.assert.topic.default.timeout.ms ksql.connect.basic.auth.credentials.file "
    "ksql.connect.basic.auth.credentials.source ksql.connect.url ksql.connect.worker.config "
    "ksql.endpoint.logging.ignored.paths.regex ksql.endpoint.logging.log.queries "
    "ksql.fail.on.deserialization.error ksql.fail.on.production.error "
    "ksql.functions.collect_list.limit ksql.functions.collect_set.limit "
    "ksql.headers.columns.enabled ksql.heartbeat.check.interval.ms "
    "ksql.heartbeat.discover.interval.ms ksql.heartbeat.enable ksql.heartbeat.missed.threshold.ms "
    "ksql.heartbeat.send.interval.ms ksql.heartbeat.thread.pool.size ksql.heartbeat.window.ms "
    "ksql.idle.connection.timeout.seconds ksql.internal.listener ksql.internal.topic.replicas "
    "ksql.lag.reporting.enable ksql.lag.reporting.send.interval.ms "
    "ksql.logging.processing.rows.include ksql.logging.processing.stream.auto.create "
    "ksql.logging.processing.stream.name ksql.logging.processing.topic.auto.create "
    "ksql.logging.processing.topic.name ksql.logging.processing.topic.partitions "
    "ksql.logging.processing.topic.replication.factor "
    "ksql.logging.server.rate.limited.request.paths "
    "ksql.logging.server.rate.limited.response.codes ksql.max.push.queries "
    "ksql.metrics.tags.custom ksql.output.topic.name.prefix ksql.persistence.default.format.key "
    "ksql.persistence.default.format.value ksql.persistence.wrap.single.values "
    "ksql.plugins.rocksdb.cache.limit.strict ksql.properties.overrides.denylist "
    "ksql.queries.file ksql.query.persistent.active.limit "
    "ksql.query.pull.enable.standby.reads ksql.query.pull.interpreter.enabled "
    "ksql.query.pull.max.allowed.offset.lag ksql.query.pull.table.scan.enabled "
    "ksql.query.push.v2.enabled ksql.query.retry.backoff.initial.ms "
    "ksql.query.retry.backoff.max.ms ksql.runtime.feature.shared.enabled "
    "ksql.schema.registry.url ksql.service.id ksql.sink.partitions ksql.sink.replicas "
    "ksql.streams.auto.offset.reset ksql.streams.bootstrap.servers "
    "ksql.streams.buffered.records.per.partition ksql.streams.cache.max.bytes.buffering "
    "ksql.streams.commit.interval.ms ksql.streams.max.task.idle.ms "
    "ksql.streams.num.standby.replicas ksql.streams.num.stream.threads "
    "ksql.streams.processing.guarantee ksql.streams.producer.compression.type "
    "ksql.streams.replication.factor ksql.streams.state.dir ksql.streams.task.timeout.ms "
    "ksql.streams.topology.optimization ksql.suppress.enabled ksql.timestamp.throw.on.invalid "
    "ksql.udfs.enabled ksql.variable.substitution.enable listeners response.http.headers.config"
)
SHIPPED = words(  # in the files that ksqlDB ships
    "ksql.resource.extension.class ksql.streams.producer.max.block.ms "
    "ksql.internal.topic.min.insync.replicas ksql.streams.topic.min.insync.replicas "
    "ksql.streams.producer.delivery.timeout.ms ksql.streams.producer.acks"
)


@pytest.mark.parametrize("name", [*PAGE, *SHIPPED])
def test_no_name_is_unknown(name: str) -> None:
    row = PROPERTIES.get(canonical(name))
    warnings = odd_properties({name: "1" if row is None else row.default})
    assert not [each for each in warnings if "not known" in each]


def test_properties_without_effect_say_so() -> None:
    warnings = odd_properties(
        {
            "ksql.connect.request.headers.plugin": "org.Headers",
            "ksql.streams.producer.max.block.ms": "9",
            "ksql.streams.topic.min.insync.replicas": "2",
            "ksql.streams.producer.linger": "1",
        }
    )
    assert warnings == [
        "the property ksql.connect.request.headers.plugin is accepted, but has no effect.",
        "the property ksql.streams.producer.max.block.ms is one of Kafka's Java clients and has no "
        "effect.",
        "the property ksql.streams.topic.min.insync.replicas is one of Kafka's Java clients and has"
        " no effect.",
        "the property ksql.streams.producer.linger is not known and has no effect.",
    ]


@pytest.mark.parametrize("prefix", ["", "ksql.streams."])
def test_some_map_to_properties_of_the_server(prefix: str, tmp_path: Path) -> None:
    bound = f"{prefix}statestore.uncommitted.max.bytes=-1"
    options = [f"{prefix}state.dir={tmp_path}", f"{prefix}replication.factor=3", bound]
    configuration = read_configuration(None, options, {})
    assert configuration == {
        "ksql.state.dir": str(tmp_path),
        "ksql.internal.topic.replicas": "3",
        "ksql.store.max.uncommitted.bytes": "-1",
    }
    assert odd_properties(configuration) == []
    configuration = read_configuration(None, [*options, "ksql.state.dir=x"], {})
    assert configuration["ksql.state.dir"] == "x"
    assert len(odd_properties(configuration)) == 1


@pytest.mark.parametrize(
    "name",
    [
        "ksql.streams.num.stream.threads",
        "num.stream.threads",
        "ksql.streams.consumer.max.poll.records",
        "ksql.streams.producer.max.block.ms",
        "ksql.streams.state.dir",
        "ksql.query.pull.interpreter.enabled",
    ],
)
def test_set_of_one_warns_and_the_script_continues(name: str) -> None:
    answers = World().run(f"SET '{name}'='4'; SHOW STREAMS;")
    assert isinstance(answers[0], WarningEntity)
    assert f"The property '{name}' is accepted, but has no effect." in answers[0].message
    assert len(answers) == 2
    assert World().run("SET 'auto.offset.reset'='earliest';") == []


def test_set_of_what_does_not_exist_is_refused() -> None:
    for name in ("ksql.streams.num.stream.thread", "producer.linger", "ksql.streams.nonsense"):
        with pytest.raises(UnknownProperty):
            check(name)
