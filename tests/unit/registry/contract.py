"""What the registry must do on every log; the subclasses say on which."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ksql.formats.schema_registry import Reference, Schema, SchemaNotFound, SchemaRejected
from ksql.registry import errors as err
from ksql.registry.kinds import Level
from ksql.registry.local import LocalRegistry
from ksql.registry.steps import LATEST, Config
from ksql.registry.subjects import Subjects


def avro(*fields, required=()):
    members = [f'{{"name": "{one}", "type": "int", "default": 0}}' for one in fields]
    members += [f'{{"name": "{one}", "type": "int"}}' for one in required]
    return Schema("AVRO", f'{{"type": "record", "name": "R", "fields": [{", ".join(members)}]}}')


class SubjectsContract:
    """Tests of Subjects; ``store`` is an empty one."""

    @pytest.fixture
    def subjects(self, store):
        return Subjects(store)

    def test_the_same_schema_has_one_id_everywhere(self, subjects):
        first = subjects.register("a", avro("x"))
        assert (first.version, first.id) == (1, 1)
        assert subjects.register("a", avro("x")) == first
        spaced = Schema("AVRO", avro("x").text.replace(":", " : "))
        assert subjects.register("a", spaced) == first
        other = subjects.register("b", avro("x"))
        assert (other.id, other.guid, other.version) == (1, first.guid, 1)
        assert subjects.register("a", avro("x", "y")).id == 2
        assert subjects.versions("a") == [1, 2]
        assert [(one.subject, one.version) for one in subjects.uses(1)] == [("a", 1), ("b", 1)]
        assert subjects.schema(1).schema == subjects.schema_by_guid(first.guid).schema
        assert subjects.last_id() == 2

    def test_lookup_finds_what_is_there_and_nothing_else(self, subjects):
        with pytest.raises(err.SubjectNotFound):
            subjects.lookup("a", avro("x"))
        schema_id = subjects.register("a", avro("x"))
        assert subjects.lookup("a", avro("x")) == schema_id
        with pytest.raises(err.NoSuchSchema):
            subjects.lookup("a", avro("y"))
        for version in (1, LATEST):
            assert subjects.version("a", version) == schema_id
        with pytest.raises(err.VersionNotFound):
            subjects.version("a", 2)
        with pytest.raises(err.NoSuchSchema):
            subjects.schema(7)
        assert subjects.last_id() == 1  # looking up adds nothing

    def test_numbers_are_never_given_twice(self, subjects):
        subjects.set_config(Config(Level.NONE))
        subjects.register("a", avro("x"))
        subjects.register("a", avro("y"))
        assert subjects.delete_version("a", LATEST) == 2
        assert subjects.delete_version("a", 2, permanent=True) == 2
        assert subjects.register("a", avro("z")).version == 3
        assert subjects.delete_subject("a") == [1, 3]
        assert subjects.delete_subject("a", permanent=True) == [1, 3]
        with pytest.raises(err.NoSuchSchema):
            subjects.schema(1)
        again = subjects.register("a", avro("x"))
        assert (again.version, again.id) == (4, 4)
        assert subjects.register("a", avro("new")).id == 5

    def test_deleted_version_can_still_be_requested(self, subjects):
        subjects.register("a", avro("x"))
        with pytest.raises(err.SubjectNotSoftDeleted):
            subjects.delete_subject("a", permanent=True)
        with pytest.raises(err.VersionNotSoftDeleted):
            subjects.delete_version("a", 1, permanent=True)
        subjects.delete_subject("a")
        assert (subjects.subjects(), subjects.subjects(deleted=True)) == ([], ["a"])
        assert subjects.subjects(only_deleted=True) == ["a"]
        assert subjects.version("a", 1, deleted=True).deleted
        assert subjects.lookup("a", avro("x"), deleted=True).version == 1
        assert subjects.schema(1).schema.kind == "AVRO"  # records with that id are still there
        for ask in (subjects.versions, lambda name: subjects.version(name, LATEST)):
            with pytest.raises(err.SubjectNotFound):
                ask("a")
        with pytest.raises(err.SubjectSoftDeleted):
            subjects.delete_subject("a")
        with pytest.raises(err.VersionSoftDeleted):
            subjects.delete_version("a", 1)
        assert subjects.register("a", avro("x")).version == 2

    @pytest.mark.parametrize(
        ("level", "versions", "new", "fits"),
        [
            (Level.BACKWARD, [avro("a")], avro("b"), True),
            (Level.BACKWARD, [avro("a")], avro("a", required=["b"]), False),
            (Level.FORWARD, [avro("a")], avro("a", required=["b"]), True),
            (Level.FORWARD, [avro(required=["a"])], avro("b"), False),
            (Level.FULL, [avro("a")], avro("a", "b"), True),
            (Level.FULL, [avro(required=["a"])], avro(), False),
            (Level.NONE, [avro("a")], Schema("JSON", "{}"), True),
            (Level.BACKWARD, [avro("a")], Schema("JSON", "{}"), False),
            (Level.BACKWARD, [avro(), avro("a")], avro(required=["a"]), True),
            (Level.BACKWARD_TRANSITIVE, [avro(), avro("a")], avro(required=["a"]), False),
            (Level.FORWARD_TRANSITIVE, [avro(required=["a"]), avro("a")], avro(), False),
            (Level.FULL_TRANSITIVE, [avro("a"), avro("b")], avro("c"), True),
        ],
    )
    def test_the_level_decides(self, subjects, level, versions, new, fits):
        subjects.set_config(Config(Level.NONE), "s")
        for one in versions:
            subjects.register("s", one)
        subjects.set_config(Config(level), "s")
        faults = subjects.faults("s", new)
        assert bool(faults) != fits
        if fits:
            assert subjects.register("s", new).version == len(versions) + 1
        else:
            with pytest.raises(err.Incompatible) as caught:
                subjects.register("s", new)
            assert list(caught.value.reasons) == faults
            assert subjects.versions("s") == list(range(1, len(versions) + 1))

    def test_settings_of_a_subject_hide_those_of_all(self, subjects):
        assert subjects.config() == Config(Level.BACKWARD, normalize=False)
        with pytest.raises(err.NoSubjectCompatibility):
            subjects.config("s")
        subjects.set_config(Config(Level.FULL))
        assert subjects.config("s", effective=True).compatibility is Level.FULL
        subjects.set_config(Config(Level.NONE, normalize=True), "s")
        assert subjects.config("s") == Config(Level.NONE, normalize=True)
        assert subjects.reset_config("s") == Config(Level.NONE, normalize=True)
        assert subjects.config("s", effective=True).compatibility is Level.FULL
        assert subjects.reset_config().compatibility is Level.FULL
        assert subjects.config().compatibility is Level.BACKWARD
        with pytest.raises(err.SubjectNotFound):
            subjects.reset_config("s")

    def test_modes(self, subjects):
        subjects.register("s", avro())
        subjects.set_mode("READONLY", "s")
        for act in (
            lambda: subjects.register("s", avro("a")),
            lambda: subjects.delete_subject("s"),
        ):
            with pytest.raises(err.NotPermitted, match="read-only"):
                act()
        assert subjects.register("s", avro()).version == 1  # it is there: nothing is written
        with pytest.raises(err.NotPermitted):
            subjects.set_mode("IMPORT", "s")
        assert subjects.reset_mode("s") == "READONLY"
        with pytest.raises(err.NoSubjectMode):
            subjects.reset_mode("s")
        with pytest.raises(err.NotPermitted, match="not in import mode"):
            subjects.register("s", avro("a"), schema_id=50)

    def test_an_import_brings_its_numbers(self, subjects):
        subjects.set_mode("IMPORT", "s")
        with pytest.raises(err.NotPermitted):
            subjects.register("s", avro())
        entry = subjects.register("s", avro(), schema_id=50, version=3)
        assert (entry.id, entry.version) == (50, 3)
        assert subjects.register("s", avro(), schema_id=50, version=3) == entry
        with pytest.raises(err.OtherId):
            subjects.register("s", avro(), schema_id=51)
        with pytest.raises(err.NotPermitted, match="Overwrite"):
            subjects.register("s", avro("a"), schema_id=50)
        with pytest.raises(err.InvalidSchema, match="one more"):
            subjects.register("s", avro("a"), schema_id=52, version=2)
        assert subjects.register("other", avro("b")).id == 51

    def test_references(self, subjects):
        inner = Schema("AVRO", '{"type": "record", "name": "I", "fields": []}')
        outer = Schema(
            "AVRO", '{"type": "array", "items": "I"}', (Reference("I", "inner", LATEST),)
        )
        with pytest.raises(err.InvalidSchema, match="inner"):
            subjects.register("outer", outer)
        subjects.register("inner", inner)
        entry = subjects.register("outer", outer)
        assert entry.schema.references == (Reference("I", "inner", 1),)
        assert subjects.imported(entry.schema) == {"I": subjects.schema(1).schema.text}
        assert subjects.referring("inner", LATEST) == [entry.id]
        for act in (subjects.delete_subject, lambda name: subjects.delete_version(name, 1)):
            with pytest.raises(err.ReferenceExists):
                act("inner")
        subjects.delete_subject("outer")
        assert subjects.delete_subject("inner") == [1]

    def test_normalising_makes_more_schemas_the_same(self, subjects):
        one = Schema("JSON", '{"title": "t", "type": "string"}')
        two = Schema("JSON", '{"type": "string", "title": "t"}')
        entry = subjects.register("s", one, normalize=True)
        assert subjects.register("s", two, normalize=True) == entry
        with pytest.raises(err.NoSuchSchema):
            subjects.lookup("s", two)
        subjects.set_config(Config(normalize=True), "s")
        assert subjects.lookup("s", two) == entry

    def test_names_and_texts_that_cannot_be(self, subjects):
        for name in ("", " ", "a\nb", "a\0", "x" * 601):
            with pytest.raises(err.InvalidSubject):
                subjects.register(name, avro())
        for text in ("", " ", "nothing"):
            with pytest.raises(err.InvalidSchema):
                subjects.register("s", Schema("AVRO", text))
        assert subjects.subjects(deleted=True) == []

    def test_a_failure_in_between_leaves_nothing(self, store, subjects, monkeypatch):
        monkeypatch.setattr(
            "ksql.registry.state.Draft.add_version",
            lambda *_: (_ for _ in ()).throw(OSError),
        )
        with pytest.raises((OSError, err.StoreFailed)):
            subjects.register("s", avro())
        monkeypatch.undo()
        with store.reading() as tables:
            assert tables.schema(1) is None
        assert subjects.register("s", avro()).id == 1

    def test_threads_do_not_get_into_each_others_way(self, subjects):
        names = [f"f{number % 4}" for number in range(24)]
        with ThreadPoolExecutor(8) as pool:
            schema_ids = list(pool.map(lambda name: subjects.register("s", avro(name)), names))
        ids = {name: one.id for name, one in zip(names, schema_ids, strict=True)}
        assert sorted(ids.values()) == [1, 2, 3, 4]
        assert subjects.versions("s") == [1, 2, 3, 4]

    def test_in_process(self, subjects):
        registry = LocalRegistry(subjects)
        assert registry.latest("s") is None
        assert registry.ids("s") == []
        registry.delete("s")
        assert registry.register("s", avro("a")) == registry.register("s", avro("a")) == 1
        assert registry.latest("s") == registry.version("s", 1)
        assert registry.by_id(1).kind == "AVRO"
        assert (registry.ids("s"), registry.subjects()) == ([1], ["s"])
        with pytest.raises(SchemaRejected, match="READER_FIELD_MISSING_DEFAULT_VALUE"):
            registry.register("s", avro("a", required=["b"]))
        for ask in (lambda: registry.by_id(9), lambda: registry.version("s", 9)):
            with pytest.raises(SchemaNotFound):
                ask()
        registry.delete("s")
        registry.delete("s")
        assert registry.latest("s") is None
        assert registry.by_id(1).kind == "AVRO"
