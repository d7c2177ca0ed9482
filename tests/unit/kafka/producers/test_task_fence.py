from __future__ import annotations

from ksql.kafka.producers.task_transactions import TaskFence


def test_the_last_claim_holds(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    first, other = TaskFence.taken("app-0-1"), TaskFence.taken("app-0-2")
    assert first.held()
    assert other.held()
    second = TaskFence.taken("app-0-1")
    assert (first.held(), second.held(), other.held()) == (False, True, True)
    assert all(path.parent.parent == tmp_path for path in (first.path, second.path))


def test_a_turn_that_is_gone_or_could_not_be_written_is_not_held(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    fence = TaskFence.taken("a")
    fence.path.unlink()
    assert not fence.held()
    file = tmp_path / "file"
    file.write_text("in the way")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(file))
    assert not TaskFence.taken("a").held()
