"""docker-compose.yml and the Dockerfile as Compose reads them, for the tests of both rings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
FILE: Final = ROOT / "docker-compose.yml"
RECIPE: Final = ROOT / "Dockerfile"
OWN: Final = "ksql-spark"
"""The image that is built here."""
SECRETS: Final = "/run/secrets/"
OVERRIDE: Final = "--override="
_VARIABLE: Final = re.compile(r"\$\{(\w+):-([^}]*)\}")


def interpolated(text: str, variables: Mapping[str, str]) -> str:
    """The text with variables put in, or their defaults."""
    return _VARIABLE.sub(lambda match: variables.get(match[1]) or match[2], text)


def read(variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The file as Compose takes it."""
    document: dict[str, Any] = yaml.safe_load(
        interpolated(FILE.read_text("utf-8"), variables or {})
    )
    return document


def overrides(service: Mapping[str, Any]) -> dict[str, str]:
    """The properties that a command gives to the server."""
    words = [word for word in service["command"] if word.startswith(OVERRIDE)]
    return dict(word.removeprefix(OVERRIDE).split("=", 1) for word in words)


def in_order(services: Mapping[str, Any]) -> list[str]:
    """The services, each behind those that it depends on."""
    names: list[str] = []

    def add(name: str) -> None:
        for needed in services[name].get("depends_on", {}):
            add(needed)
        if name not in names:
            names.append(name)

    for name in services:
        add(name)
    return names


def java_properties(options: str) -> dict[str, str]:
    """The properties that a JVM's options set."""
    words = [word.removeprefix("-D") for word in options.split() if word.startswith("-D")]
    return dict(word.split("=", 1) for word in words)
