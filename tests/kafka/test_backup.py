"""Disasters: the command topic is gone, or the directory with it; a backup brings them back."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from ksql.app.backup.form import (
    NoBackup,
    NothingToSave,
)
from ksql.app.backup.restore import Restore, RestoreOptions
from ksql.app.backup.save import save
from ksql.app.backup.topics import read
from ksql.app.startup_checks import StateInDanger
from ksql.app.state import HalfRestored
from ksql.core.config import Settings
from ksql.core.error_table import (
    BROKER_INSIDE,
    OTHER_SERVICE,
    SERVER_RUNS,
    STATE_THERE,
    TARGET_THERE,
    TOPIC_THERE,
)
from ksql.core.process.lock import DirectoryBusy
from ksql.kafka.admin import Admin
from ksql.kafka.settings import KafkaSettings
from ksql.sql.catalog.model import Topic
from tests.kafka.records import read_all
from tests.kafka.servers import EARLIEST, ROOT
from tests.waits import PATIENCE_S, await_true


@pytest.fixture
def admin(broker):
    admin_ = Admin(KafkaSettings(broker.bootstrap))
    yield admin_
    admin_.close()


class Disaster:
    """A service, its backup, and what is done to it."""

    def __init__(self, scene, admin):
        self.scene, self.admin = scene, admin
        self.state, self.folder = scene.folder / "state", scene.folder / "saved"
        self.schemas = f"_schemas_{scene.service_id}"

    def settings(self, **properties):
        return Settings(
            {
                "bootstrap.servers": self.scene.bootstrap,
                "ksql.service.id": self.scene.service_id,
                "ksql.state.dir": str(self.state),
                "ksql.schema.registry.topic": self.schemas,
                **properties,
            }
        )

    def save(self, folder=None, **options):
        return save(self.settings(), folder or self.folder, now_ms(), **options)

    def restore(self, *, overwrite=False, keep_state=False, folder=None):
        lines: list[str] = []
        options = RestoreOptions(overwrite=overwrite, keep_state=keep_state)
        Restore(self.settings(), folder or self.folder, now_ms(), options, lines.append).run()
        return lines

    def run_killed(self, where, *arguments):
        """The command, in a process that kills itself in that function."""
        module, _, name = where.rpartition(".")
        options = [
            part for pair in self.settings().server.items() for part in ("-o", "=".join(pair))
        ]
        script = (
            f"import importlib, os, sys; m = importlib.import_module('{module}');"
            f"setattr(m, '{name}', lambda *a, **k: os.kill(os.getpid(), {int(signal.SIGKILL)}));"
            "from server.entry import main; sys.exit(main(sys.argv[1:]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments, *options, str(self.folder)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            cwd=ROOT,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr


def now_ms():
    return int(time.time() * 1000)


def number(query_id):
    return int(query_id.rpartition("_")[2])


@pytest.fixture
def disaster(scene, admin):
    return Disaster(scene, admin)


def more(name):
    return f"CREATE STREAM {name} AS SELECT * FROM {{}};"


@pytest.mark.proof
def test_the_topic_is_gone_and_the_directory_kept(disaster):
    scene = disaster.scene
    with scene.served() as http:
        scene.declare(http)
        assert scene.count() == 1
        (counting,) = http.queries()
        before = read(KafkaSettings(scene.bootstrap), scene.command_topic)
        assert disaster.save().state is None  # the server runs
        http.ksql(f"CREATE STREAM {scene.dst}_LOST AS SELECT * FROM {scene.src};")
        (lost,) = http.queries().keys() - {counting}
        disaster.admin.delete(scene.command_topic)
        assert scene.count() == 2
    with pytest.raises(StateInDanger, match="is missing"), scene.served():
        pass
    report = "\n".join(disaster.restore())
    assert f"{lost} came after the backup" in report
    after = read(KafkaSettings(scene.bootstrap), scene.command_topic)
    at = {each.offset: (each.key, each.value) for each in after}
    assert [at[each.offset] for each in before] == [(each.key, each.value) for each in before]
    with scene.served() as http:
        http.await_queries({counting: "RUNNING"})
        assert scene.count() == 3
        statuses = http.client.get("/status").json()["commandStatuses"]
        assert not any("fill" in each for each in statuses)
        http.ksql(f"CREATE STREAM {scene.dst}_NEW AS SELECT * FROM {scene.src};")
        (new,) = http.queries().keys() - {counting}
        assert number(new) > number(lost) + 1_000_000
    with scene.served() as http:  # the next start agrees
        http.await_queries({counting: "RUNNING", new: "RUNNING"})
        http.ksql(f"CREATE STREAM {scene.dst}_NEXT AS SELECT * FROM {scene.src};")
        (next_,) = http.queries().keys() - {counting, new}
        assert number(new) < number(next_) < number(new) + 1_000


@pytest.mark.proof
@pytest.mark.parametrize("mode", ["in_place", "rebuild"])
def test_query_whose_replacement_is_lost_does_not_continue_under_its_former_plan(disaster, mode):
    scene = disaster.scene
    again = (
        f"CREATE OR REPLACE TABLE {scene.dst} WITH (REPLACE_MODE='{{}}') AS "
        f"SELECT K, COUNT(*) AS C FROM {scene.src} WHERE N > 0 GROUP BY K;"
    )
    waiting = EARLIEST | {"ksql.upgrade.wait.ms": "60000"}
    with scene.served() as http:
        scene.declare(http)
        assert scene.count() == 1
        (counting,) = http.queries()
        disaster.save()
        http.ksql(again.format(mode), waiting)
        assert scene.count() == (2 if mode == "in_place" else 1)
        disaster.admin.delete(scene.command_topic)
    disaster.restore()
    with scene.served() as http:
        http.await_error(counting, "knows a later plan than the command topic")
        http.ksql(again.format("rebuild"), waiting)
        http.await_queries({counting: "RUNNING"})
        assert scene.count() == 2


def test_both_are_gone_and_all_was_saved(disaster):
    scene = disaster.scene
    with scene.served() as http:
        scene.declare(http)
        assert scene.count() == 1
        (counting,) = http.queries()
    assert disaster.save().state is not None
    with scene.served():
        assert scene.count() == 2
    disaster.admin.delete(scene.command_topic, disaster.schemas)
    shutil.rmtree(disaster.state)
    disaster.restore()
    with scene.served() as http:
        http.await_queries({counting: "RUNNING"})
        assert scene.count() == 3
    assert scene.checkpoints() == [counting]


@pytest.mark.proof
def test_both_are_gone_and_only_the_topics_were_saved(disaster):
    scene = disaster.scene
    with scene.served() as http:
        scene.declare(http)
        assert scene.count() == 1
        (counting,) = http.queries()
        disaster.save()
    disaster.admin.delete(scene.command_topic, disaster.schemas)
    shutil.rmtree(disaster.state)
    disaster.restore()
    with scene.served() as http:
        http.await_error(counting, f"the checkpoint of query {counting} is missing")
    with scene.served(ksql__state__anew="all") as http:
        http.await_queries({counting: "RUNNING"})
        scene.count()  # all records are counted again, the first one too
        await_true(
            "both are counted",
            lambda: read_all(scene.bootstrap, scene.dst)[-1].value["C"] == 2,
        )


@pytest.mark.proof
def test_restored_twice_ids_never_come_again(disaster):
    scene = disaster.scene
    ids, new = set(), ""
    with scene.served() as http:
        scene.declare(http)
        ids |= set(http.queries())
    disaster.save(with_state=False)
    for _ in range(3):
        disaster.admin.delete(scene.command_topic)
        disaster.restore()
        with scene.served() as http:
            name = f"{scene.dst}_A"
            http.ksql(f"CREATE STREAM {name} AS SELECT * FROM {scene.src};")
            (new,) = http.queries().keys() - {min(ids, key=number)}
            assert new not in ids
            ids.add(new)
    second = disaster.folder.with_name("second")
    disaster.save(second, with_state=False)
    disaster.admin.delete(scene.command_topic)
    disaster.restore(folder=second)
    with scene.served() as http:
        assert new in http.queries()  # of the last backup
        http.ksql(f"CREATE STREAM {scene.dst}_B AS SELECT * FROM {scene.src};")
        assert max(map(number, http.queries())) > max(map(number, ids))


@pytest.mark.proof
def test_restore_overwrites_only_on_request(disaster):
    scene, admin = disaster.scene, disaster.admin
    with scene.served() as http:
        scene.declare(http)
        assert scene.count() == 1
    disaster.save()
    with pytest.raises(TARGET_THERE.base, match=TARGET_THERE.pattern):
        disaster.save()
    with pytest.raises(STATE_THERE.base, match=STATE_THERE.pattern):
        disaster.restore()
    report = disaster.restore(keep_state=True)
    assert f"the topic {scene.command_topic}: it is the one that was saved" in report
    admin.delete(scene.command_topic)
    admin.create(Topic(scene.command_topic, 1))  # empty: nothing is lost with it
    disaster.restore(keep_state=True)
    report = disaster.restore(keep_state=True)  # again: it is whole
    assert f"the topic {scene.command_topic}: it has all records of the backup" in report
    admin.delete(scene.command_topic)
    shutil.rmtree(disaster.state)
    with scene.served() as http:
        http.ksql("CREATE TYPE T AS STRUCT<A INT>;")
    known = admin.topic_id(scene.command_topic)
    with pytest.raises(TOPIC_THERE.base, match="not those of the backup"):
        disaster.restore(keep_state=True)
    assert admin.topic_id(scene.command_topic) == known
    disaster.restore(overwrite=True)
    (replaced,) = disaster.state.glob("replaced-*")
    assert (replaced / "service.json").exists()
    with scene.served() as http:
        assert len(http.queries()) == 1
        assert scene.count() == 2


def test_it_is_refused_while_a_server_runs_here_or_elsewhere(disaster):
    scene = disaster.scene
    with scene.served() as http:
        scene.declare(http)
        disaster.save()
        with pytest.raises(DirectoryBusy):
            disaster.restore()
        here, disaster.state = disaster.state, scene.folder / "elsewhere"
        with pytest.raises(SERVER_RUNS.base, match=SERVER_RUNS.pattern):
            disaster.restore(overwrite=True)
        disaster.state = here
        assert scene.count() == 1


def test_a_damaged_or_foreign_backup_changes_nothing(disaster):
    scene = disaster.scene
    with pytest.raises(NothingToSave):
        disaster.save()
    assert not disaster.folder.exists()
    with scene.served() as http:
        scene.declare(http)
        assert scene.count() == 1
    disaster.save()
    disaster.admin.delete(scene.command_topic)
    shutil.rmtree(disaster.state)
    foreign = disaster.settings(**{"ksql.service.id": "another_"})
    with pytest.raises(OTHER_SERVICE.base, match=OTHER_SERVICE.pattern):
        Restore(foreign, disaster.folder, now_ms()).run()
    for file in ("command_topic.jsonl", "state.sha256", "state/service.json", "backup.json"):
        whole = (disaster.folder / file).read_bytes()
        (disaster.folder / file).write_bytes(whole.replace(b"a", b"b", 1))
        with pytest.raises(NoBackup):
            disaster.restore()
        (disaster.folder / file).write_bytes(whole)
    assert disaster.admin.topic_id(scene.command_topic) is None
    assert not disaster.state.exists() or not any(disaster.state.glob("*.json"))
    disaster.restore()
    with scene.served():
        assert scene.count() == 2


def test_the_embedded_brokers_topics_lie_in_the_directory(disaster):
    disaster.state.mkdir()
    (disaster.state / "service.json").touch()
    settings = disaster.settings(**{"bootstrap.servers": ""})
    assert save(settings, disaster.folder, now_ms()).topics == ()
    with pytest.raises(BROKER_INSIDE.base, match=BROKER_INSIDE.pattern):
        save(settings, disaster.folder.with_name("other"), now_ms(), with_state=False)


@pytest.mark.proof
@pytest.mark.parametrize(
    "where",
    [
        "ksql.app.backup.topics.save",
        "ksql.app.backup.directory.save",
        "ksql.app.backup.save.finish",
    ],
)
def test_a_backup_that_is_killed_is_none_and_is_repeated(disaster, where):
    scene = disaster.scene
    with scene.served() as http:
        scene.declare(http)
    disaster.run_killed(where, "backup")
    assert not disaster.folder.exists()
    with pytest.raises(NoBackup):
        disaster.restore(folder=disaster.folder.with_name(f".{disaster.folder.name}.part"))
    assert disaster.save().state is not None
    assert list(disaster.folder.parent.glob(".saved*")) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    "where",
    [
        "ksql.app.backup.directory.stage",
        "ksql.app.backup.topics._send",
        "ksql.app.backup.topics._compare",
        "ksql.app.backup.directory.put",
        "ksql.app.backup.restore.write_identity",
        "ksql.app.backup.restore.finish",
    ],
)
def test_a_restore_that_is_killed_keeps_servers_out_and_is_repeated(disaster, where):
    scene = disaster.scene
    with scene.served() as http:
        scene.declare(http)
        assert scene.count() == 1
        (counting,) = http.queries()
    disaster.save()
    disaster.admin.delete(scene.command_topic, disaster.schemas)
    shutil.rmtree(disaster.state)
    disaster.run_killed(where, "restore")
    with pytest.raises(HalfRestored, match="not finished"), scene.served():
        pass
    disaster.restore()
    with scene.served() as http:
        http.await_queries({counting: "RUNNING"})
        assert scene.count() == 2
    assert {row.value["C"] for row in read_all(scene.bootstrap, scene.dst)} == {1, 2}


def test_the_commands_say_what_they_do(disaster):
    scene = disaster.scene
    with scene.served() as http:
        scene.declare(http)
    options = [
        part for pair in disaster.settings().server.items() for part in ("-o", "=".join(pair))
    ]

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "server.entry", *arguments, *options, str(disaster.folder)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            cwd=ROOT,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    status, said = run("backup")
    assert status == 0
    assert re.search(rf"\d+ records of {scene.command_topic}", said)
    assert "files of the state directory" in said
    status, said = run("restore")
    assert status == 1
    assert "--keep-state" in said
    status, said = run("restore", "--keep-state")
    assert (status, said.splitlines()[-1]) == (0, "done: the server may be started")
