"""The answers of statements about connectors; see ``ksql.control.statements.entities``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ksql.control.statements.entities import Entity, SourceDescription


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    """One connector of a list; ``state`` counts its tasks, too."""

    name: str
    type: str
    class_name: str
    state: str


@dataclass(frozen=True, slots=True)
class ConnectorTask:
    """One task of a connector, by its number."""

    connector: str
    task: int


@dataclass(frozen=True, slots=True)
class CreatedConnector:
    """A connector that was made; secrets of its configuration are hidden."""

    name: str
    config: Mapping[str, str]
    tasks: tuple[ConnectorTask, ...]
    type: str


@dataclass(frozen=True, slots=True)
class ConnectorPlugin:
    """One class of connectors."""

    class_name: str
    type: str
    version: str


@dataclass(frozen=True, kw_only=True)
class ConnectorInfoEntity(Entity):
    """CREATE CONNECTOR."""

    type_name = "connector_info"
    info: CreatedConnector


@dataclass(frozen=True, kw_only=True)
class DropConnector(Entity):
    """DROP CONNECTOR."""

    type_name = "drop_connector"
    connector_name: str


@dataclass(frozen=True, kw_only=True)
class ConnectorDescription(Entity):
    """DESCRIBE CONNECTOR; ``status`` is as Kafka Connect writes it, with ``worker_id``."""

    type_name = "connector_description"
    connector_class: str
    status: Mapping[str, Any]
    sources: tuple[SourceDescription, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ConnectorList(Entity):
    """SHOW CONNECTORS."""

    type_name = "connector_list"
    connectors: tuple[ConnectorInfo, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ConnectorPluginsList(Entity):
    """SHOW CONNECTOR PLUGINS."""

    type_name = "connector_plugins_list"
    connectors_plugins: tuple[ConnectorPlugin, ...] = ()
