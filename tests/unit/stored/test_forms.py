"""Every class that is stored has frozen samples, and they are read and written as they are."""

from __future__ import annotations

import json

import pytest

from tests.stored.corpora import V1
from tests.stored.lines import dumped
from tests.stored.samples import CODECS, classes, forms, samples, stored_keys

FORMS = {form.tag: (form, structs) for form, structs in forms().values()}


def frozen(tag):
    return (V1 / "forms" / f"{tag}.jsonl").read_text("utf-8").splitlines()


def test_all_stored_classes_have_a_tag():
    """The classes are found by the types of fields, beginning with what is stored as a whole."""
    declared = {form.cls for form, _ in FORMS.values()}
    assert set(classes()) == declared


def test_a_tag_means_the_same_in_every_codec():
    for structs in CODECS:
        for form in structs.forms:
            assert FORMS[form.tag][0] == form


def test_every_sample_has_a_tag():
    """A tag that was released is read for ever, also if nothing is written with it any more."""
    assert {file.stem for file in (V1 / "forms").iterdir()} == set(FORMS)


@pytest.mark.parametrize("tag", FORMS)
def test_samples_are_read_and_written_as_they_are(tag):
    form, structs = FORMS[tag]
    for line in frozen(tag):
        value = structs.build(json.loads(line))
        assert type(value) is form.cls
        assert dumped(structs.plain(value)) == line


@pytest.mark.slow
@pytest.mark.parametrize("tag", FORMS)
def test_every_alternative_of_every_field_has_a_sample(tag):
    """Of a new one there is none: ``python -m tests.stored.make`` adds it at the end."""
    form, structs = FORMS[tag]
    known = [json.loads(line) for line in frozen(tag)]
    for key in stored_keys(form):
        shown = {dumped(line.get(key)) for line in known}  # a key that is spared is not there
        assert {dumped(structs.plain(value).get(key)) for value in samples(form.cls)} <= shown, key


@pytest.mark.parametrize("tag", FORMS)
def test_samples_that_are_not_whole_are_refused(tag):
    """A field that is unknown, one that is not there, a tag that is unknown."""
    form, structs = FORMS[tag]
    body = json.loads(frozen(tag)[0])
    with pytest.raises(ValueError, match=r"is not known"):
        structs.build({**body, "$": f"{tag}2"})
    with pytest.raises(ValueError, match=r"has no field 'more'|is no"):
        structs.build({**body, "more": 1})
    for key in form.keys:
        less = {name: value for name, value in body.items() if name != key}
        if less == body:  # the word of an enum
            continue
        try:
            structs.build(less)  # a field that came later has a default
        except ValueError as error:
            assert f"a {tag} lacks the field '{key}'" == str(error)  # noqa: PT017 - either is right
