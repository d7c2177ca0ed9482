"""Finds the Java that Kafka and Spark run on.

It uses the standard library only: the set-up imports it before anything is installed.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ksql.core.errors import StartError

OLDEST_JAVA = 17
_ANSWER_SECONDS = 30
_VERSION = re.compile(r'version "(?P<text>[^"]+)"')
_HOME = re.compile(r"^\s*java\.home = (?P<home>.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that was asked for its version and answered."""

    path: Path
    version: int
    home: Path


class JavaMissing(StartError):
    """No Java, or none that is new enough."""

    def __init__(self, rejected: tuple[str, ...], install: str) -> None:
        fact = "Java is too old" if rejected else "Java was not found"
        needs = f"Kafka and Spark need Java {OLDEST_JAVA} or newer."
        detail = "\n".join((*rejected, needs))
        super().__init__(
            f"{fact}: version {OLDEST_JAVA} or newer is needed",
            detail=detail,
            hint=f"Install it with:\n    {install}\nor let JAVA_HOME name an installed one.",
        )


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """Return the Java to use: that of JAVA_HOME, else the first on the PATH that is new enough.

    Raises: JavaMissing, with what was found and this platform's command to install one.
    """
    env = os.environ if environ is None else environ
    rejected: list[str] = []
    for origin, path in _candidates(env):
        java = ask(path)
        if java is not None and java.version >= OLDEST_JAVA:
            return java
        rejected.append(
            f"{origin} has Java {java.version} ({path})."
            if java
            else f"{origin} has {path}, which does not run."
        )
    raise JavaMissing(tuple(rejected), install_command())


def ask(path: Path) -> Java | None:
    """Return what ``java -version`` prints for this executable; empty if it does not run.

    The launcher's settings are printed too: they name its real home behind links and shims.
    """
    try:
        answer = subprocess.run(  # noqa: S603 the executable is the user's own Java
            [str(path), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = answer.stderr + answer.stdout
    version = parse_version(text)
    if answer.returncode or version is None:
        return None
    home = _HOME.search(text)
    return Java(path, version, Path(home["home"]) if home else path.resolve().parent.parent)


def parse_version(text: str) -> int | None:
    """Return the release in the output of ``java -version``: 8 for "1.8.0_392", 21 for "21-ea"."""
    match = _VERSION.search(text)
    if match is None:
        return None
    numbers = [int(number) for number in re.findall(r"\d+", match["text"])]
    if not numbers:
        return None
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := env.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=env.get("PATH")):
        yield "The PATH", Path(on_path)


# --- how to install one ------------------------------------------------------------------------

_DNF = "dnf install java-21-openjdk-headless"
_BY_SYSTEM = {
    "debian": "apt-get install openjdk-21-jre-headless",
    "ubuntu": "apt-get install openjdk-21-jre-headless",
    "fedora": "dnf install java-latest-openjdk-headless",
    "rhel": _DNF,
    "centos": _DNF,
    "amzn": "dnf install java-21-amazon-corretto-headless",
    "arch": "pacman -S jre21-openjdk-headless",
    "alpine": "apk add openjdk21-jre-headless",
    "suse": "zypper install java-21-openjdk-headless",
    "opensuse": "zypper install java-21-openjdk-headless",
}
_BY_VERSION = {
    ("debian", "11"): "apt-get install openjdk-17-jre-headless",
    ("debian", "12"): "apt-get install openjdk-17-jre-headless",
}
_MAC = 'brew install openjdk@21 && export JAVA_HOME="$(brew --prefix openjdk@21)"'
_OTHER = "a JDK or JRE 17 or newer, of any vendor"


def install_command(system: str | None = None, release: str | None = None) -> str:
    """Return the command that installs a Java here, as the platform's users would type it.

    Args:
        system: ``platform.system()`` unless given.
        release: the text of ``/etc/os-release`` unless given.
    """
    if (system or platform.system()) == "Darwin":
        return _MAC
    fields = _os_release(_release_text() if release is None else release)
    names = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    exact = _BY_VERSION.get((names[0], fields.get("VERSION_ID", "")))
    command = exact or next((_BY_SYSTEM[name] for name in names if name in _BY_SYSTEM), None)
    return as_admin(command) if command else _OTHER


def as_admin(command: str) -> str:
    """Return the command as this user must type it: root needs no sudo."""
    return command if hasattr(os, "geteuid") and os.geteuid() == 0 else f"sudo {command}"


def _release_text() -> str:
    try:
        return Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return ""


def _os_release(text: str) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, value in pairs}
