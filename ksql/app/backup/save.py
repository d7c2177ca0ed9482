"""``ksql backup``: saves the command topic, ``_schemas`` and, offline, the state directory.

The topics are saved while servers run, too: what is committed at that moment. The state directory
is saved only while none runs, since checkpoints of different moments do not fit together.
"""

from __future__ import annotations

from contextlib import ExitStack
from importlib import metadata
from typing import TYPE_CHECKING, Final

from ksql.app.backup import directory, form, topics
from ksql.app.backup.directory import finish, new_folder
from ksql.app.backup.form import NothingToSave
from ksql.control.log import topic_name
from ksql.core import BROKER_INSIDE
from ksql.core import directory as state_directory
from ksql.core.process import DirectoryBusy, FileLock, sha256
from ksql.kafka import Admin, KafkaSettings
from ksql.registry import TOPIC as SCHEMAS_TOPIC
from ksql.registry import URL as REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ksql.core import Settings

COMMANDS: Final = "command_topic.jsonl"
SCHEMAS: Final = "schemas.jsonl"
LOCK: Final = "service.lock"


def save(
    settings: Settings,
    target: Path,
    now_ms: int,
    *,
    with_state: bool = True,
    tell: Callable[[str], object] = lambda _line: None,
) -> form.Manifest:
    """Save the service's topics and, unless a server runs, its state directory.

    Raises: TARGET_THERE, NothingToSave, BROKER_INSIDE, OSError, KafkaUnreachable, KafkaDenied.
    """
    root, bootstrap = state_directory(settings), settings.text("bootstrap.servers")
    with ExitStack() as stack:
        state = with_state and _held_still(root, stack)
        if not bootstrap and not state:
            raise (
                BROKER_INSIDE(root=root)
                if root.is_dir()
                else NothingToSave(f"{root} does not exist")
            )
        part = stack.enter_context(new_folder(target))
        cluster, saved = _topics(settings, part) if bootstrap else ("", ())
        for topic in saved:
            tell(f"{topic.records} records of {topic.name}")
        saved_state = _state(root, part) if state else None
        tell(_state_summary(root, saved_state, with_state=with_state))
        manifest = form.Manifest(
            made_ms=now_ms,
            made_by=metadata.version("ksql-spark"),
            service_id=settings.text("ksql.service.id"),
            cluster_id=cluster,
            topics=saved,
            state=saved_state,
        )
        finish(part, manifest)
    return manifest


def schemas_topic(settings: Settings) -> str:
    """Return the topic of the embedded registry; empty if another one is configured."""
    return "" if settings.text(REGISTRY) else settings.text(SCHEMAS_TOPIC)


def _held_still(root: Path, stack: ExitStack) -> bool:
    """Keep servers from the directory until the end; return False if one uses it."""
    if not directory.held(root):
        return False
    try:
        stack.enter_context(FileLock(root / LOCK))
    except DirectoryBusy:
        return False
    return True


def _topics(settings: Settings, part: Path) -> tuple[str, tuple[form.SavedTopic, ...]]:
    kafka = KafkaSettings.from_properties(settings.server)
    admin = Admin(kafka)
    try:
        name = topic_name(settings.text("ksql.service.id"))
        saved = [topics.save(kafka, admin, name, part / COMMANDS)]
        schemas = schemas_topic(settings)  # later: it has what the commands speak of
        if schemas and admin.topic_id(schemas) is not None:
            saved.append(topics.save(kafka, admin, schemas, part / SCHEMAS))
        return admin.cluster_id(), tuple(saved)
    finally:
        admin.close()


def _state(root: Path, part: Path) -> form.SavedState:
    listing = part / form.LISTING
    files, size = directory.save(root, part / form.STATE, listing)
    return form.SavedState(files=files, bytes=size, sha256=sha256(listing))


def _state_summary(root: Path, saved_state: form.SavedState | None, *, with_state: bool) -> str:
    if saved_state is not None:
        return (
            f"{saved_state.files} files of the state directory {root}, {saved_state.bytes:,} bytes"
        )
    why = "a server uses it, or it is empty" if with_state else "--no-state"
    return f"without the state directory {root}: {why}"
