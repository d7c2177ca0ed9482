"""The rights in Kafka that the documents list are for the names that the service uses.

``kafka/test_acls.py`` runs a service with these, and no others.
"""

from __future__ import annotations

from ksql.cluster.group import group_name
from ksql.control.log.log import topic_name
from ksql.core.records import application_id
from ksql.kafka.leadership_log import topic_name as claims_topic
from ksql.kafka.processing_log import topic_name as log_topic
from ksql.registry.kafkalog import writer_id
from tests.acls import rights

OURS = "s_"


def allowed(kind, name):
    """The operations that are listed for a name."""
    return set().union(*(r.operations for r in rights(OURS, "of_users_") if r.fits(kind, name)))


def test_every_name_that_the_service_uses_has_its_rights():
    query = application_id(OURS, "CTAS_X_7")
    for topic in (topic_name(OURS), claims_topic(OURS), f"{query}-t-changelog"):
        assert {"Create", "Describe", "Read", "Write", "Delete"} <= allowed("Topic", topic), topic
    for topic in (log_topic(OURS), "_schemas", "of_users_x"):
        assert {"Create", "Describe", "Read", "Write"} <= allowed("Topic", topic), topic
    for group in (group_name(OURS), f"{query}-f00d-stage-1"):
        assert {"Describe", "Read", "Delete"} <= allowed("Group", group), group
    for writer in (topic_name(OURS), claims_topic(OURS), query, writer_id("_schemas")):
        assert {"Describe", "Write"} <= allowed("TransactionalId", writer), writer
    assert "Describe" in allowed("Cluster", "kafka-cluster")


def test_nothing_is_given_for_the_names_of_others():
    assert allowed("Topic", "_confluent-ksql-other_command_topic") == set()
    assert allowed("TransactionalId", "other") == set()
