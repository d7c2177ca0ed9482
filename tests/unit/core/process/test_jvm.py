from __future__ import annotations

import os

import pytest

from ksql.core.process import jvm as java
from ksql.core.process.jvm import JavaMissing, find_java, install_command, parse_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25" 2025-09-16', 25),
        ('openjdk version "11.0.2"', 11),
        ('version "unknown"', None),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_versions_as_java_prints_them(text, version):
    assert parse_version(text) == version


def fake_java(folder, version, status=0):
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(
        f'#!/bin/sh\necho "    java.home = {folder}/home" >&2\n'
        f"echo 'openjdk version \"{version}\"' >&2\nexit {status}\n"
    )
    path.chmod(0o755)
    return path


def test_java_home_comes_first(tmp_path):
    home = fake_java(tmp_path / "a", "21.0.1")
    on_path = fake_java(tmp_path / "b", "17.0.1")
    env = {"JAVA_HOME": str(tmp_path / "a"), "PATH": str(on_path.parent)}
    java = find_java(env)
    assert (java.path, java.version, java.home) == (home, 21, tmp_path / "a" / "home")


@pytest.mark.parametrize(("version", "status"), [("11.0.2", 0), ("21", 1)])
def test_an_unfit_java_home_is_passed_over(tmp_path, version, status):
    fake_java(tmp_path / "a", version, status)
    on_path = fake_java(tmp_path / "b", "17.0.1")
    env = {"JAVA_HOME": str(tmp_path / "a"), "PATH": str(on_path.parent)}
    assert find_java(env).path == on_path


def test_no_java_at_all_names_the_command(tmp_path):
    with pytest.raises(JavaMissing) as missing:
        find_java({"PATH": str(tmp_path)})
    assert missing.value.message == "Java was not found: version 17 or newer is needed"
    assert install_command() in missing.value.hint


def test_a_java_that_is_too_old_is_named(tmp_path):
    old = fake_java(tmp_path, "1.8.0_392")
    with pytest.raises(JavaMissing) as missing:
        find_java({"PATH": str(old.parent)})
    assert "too old" in missing.value.message
    assert f"The PATH has Java 8 ({old})." in missing.value.detail


def test_a_java_home_that_does_not_exist_is_reported(tmp_path):
    with pytest.raises(JavaMissing) as missing:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(tmp_path)})
    assert "JAVA_HOME has" in missing.value.detail
    assert "does not run" in missing.value.detail


@pytest.mark.parametrize(
    ("release", "part"),
    [
        ('ID=debian\nVERSION_ID="12"', "apt-get install openjdk-17-jre-headless"),
        ('ID=debian\nVERSION_ID="13"', "apt-get install openjdk-21-jre-headless"),
        ('ID=ubuntu\nVERSION_ID="24.04"\nID_LIKE=debian', "apt-get install openjdk-21"),
        ("ID=linuxmint\nID_LIKE='ubuntu debian'", "apt-get install openjdk-21"),
        ("ID=fedora", "dnf install java-latest-openjdk-headless"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"', "dnf install java-21-openjdk-headless"),
        ("ID=arch", "pacman -S"),
        ("ID=alpine", "apk add"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"', "zypper install"),
        ("", "17 or newer"),
    ],
)
def test_the_command_of_each_linux(release, part):
    assert part in install_command("Linux", release)


def test_the_command_of_a_mac():
    assert install_command("Darwin", "").startswith("brew install openjdk@21")


@pytest.mark.parametrize(("uid", "command"), [(0, "apt x"), (1000, "sudo apt x")])
def test_only_root_needs_no_sudo(monkeypatch, uid, command):
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert java.as_admin("apt x") == command
