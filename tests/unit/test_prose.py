from __future__ import annotations

import pytest

from tests import prose


@pytest.mark.parametrize(
    ("source", "line", "phrase"),
    [
        ('"""What a record is."""\n', 1, "What"),
        ('def f():\n    """Who reads it."""\n', 2, "Who"),
        ('class A:\n    """Rows.\n\n    A failure is told\n    so.\n    """\n', 4, "told"),
        ("x = 1  # the log tells\n", 1, "tells"),
        ("# it goes on\n", 1, "goes on"),
        ('"""A name towards\nKafka."""\n', 1, "towards Kafka"),
        ('raise ValueError(f"{x} is beside {y}")\n', 1, "beside"),
        (
            "class E(A):\n    def __init__(self):\n        super().__init__('in vain')\n",
            3,
            "in vain",
        ),
        ('help = "until it is told to end"\n', 1, "told"),
        ('"""Records; who\never reads them."""\n', 1, "who ever"),
    ],
)
def test_a_phrase_to_avoid_is_found_in_python(source, line, phrase):
    (finding,) = prose.findings("module.py", source)
    assert (finding.line, finding.phrase) == (line, phrase)
    assert finding.instead


@pytest.mark.parametrize(
    "source",
    [
        '"""Return the record.\n\nWhat follows is kept."""\n',
        '"""Two marks tell records apart; a tag tells them apart."""\n',
        '"""Read ``told``, and `beside`."""\n',
        '"""Read until "goes on"."""\n',
        'goes_on = "beside"\n',
        '"""The query went on disk; the storyteller besides."""\n',
    ],
)
def test_code_and_plain_words_are_spared(source):
    assert prose.findings("module.py", source) == []


@pytest.mark.parametrize(
    ("source", "phrase"),
    [
        ('def f():\n    """The record."""\n', "The"),
        ('async def f():\n    """Nothing is left."""\n', "Nothing"),
        ('class A:\n    def f(self):\n        """As stored."""\n', "As"),
        ('def f():\n    """-1, 0 or 1."""\n', "-1,"),
        ('def f():\n    """``name``, quoted."""\n', "``name``,"),
        ('def f():\n    """SHOW TOPICS."""\n', "SHOW"),
        ('@functools.cache\ndef f():\n    """Whether it is so."""\n', "Whether"),
    ],
)
def test_the_docstring_of_a_function_of_the_product_begins_with_a_verb(source, phrase):
    for place in ("ksql/module.py", "server/module.py"):
        (finding,) = prose.findings(place, source)
        assert (finding.phrase, finding.instead) == (phrase, "a verb (Return .., Write ..)")
    assert prose.findings("qtt/module.py", source) == []


@pytest.mark.parametrize(
    "source",
    [
        '"""The module."""\n',
        'class A:\n    """A thing."""\n',
        'class A:\n    @property\n    def f(self):\n        """The record."""\n',
        'class A:\n    @functools.cached_property\n    def f(self):\n        """``x``."""\n',
        'class A:\n    @f.setter\n    def f(self, to):\n        """The record."""\n',
        'def f():\n    """Return it.\n\n    The second is left out.\n    """\n',
        'def f():\n    """Assert that nothing is left."""\n',
        'def f():\n    return "The record."\n',
    ],
)
def test_modules_classes_and_properties_may_begin_with_the_thing(source):
    assert prose.findings("ksql/module.py", source) == []


def test_documents_are_read_outside_their_code():
    text = "# Title\n\nRead on.\n\n```sql\nSELECT told;\n```\n\nThe query goes\non, `told`.\n"
    (finding,) = prose.findings("README.md", text)
    assert (finding.line, finding.phrase) == (9, "goes on")


def test_a_pinned_message_is_spared(monkeypatch):
    source = 'raise ValueError("Cannot tell the type")\n'
    assert prose.findings("module.py", source)
    monkeypatch.setattr(prose, "PINNED", ("Cannot tell",))
    assert prose.findings("module.py", source) == []


def test_the_report_names_file_line_phrase_and_suggestion(tmp_path, capsys):
    file = tmp_path / "module.py"
    file.write_text("x = 1\n# in vain\n")
    assert prose.main([str(file)]) == 1
    printed = capsys.readouterr().out
    assert printed == f'{file}:2: "in vain": better: pointless, without effect\n'
    file.write_text("x = 1\n")
    assert prose.main([str(file)]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("source", "phrase"),
    [
        ('"""How a record is read."""\n', "How"),
        ('"""Up to where it is read."""\n', "Up to"),
        ('"""Rows; nobody is in charge."""\n', "in charge"),
        ('"""Rows are read anew."""\n', "anew"),
        ('"""A commit, and behind it the rows."""\n', "behind it"),
        ('"""Rows. One that is late is dropped."""\n', "One that"),
        ('"""Rows are read by others."""\n', "by others"),
        ('"""A row is to follow."""\n', "is to follow"),
        ('"""The rows stand in a file."""\n', "stand"),
        ('f(hint="The server has to be started.")\n', "The"),
        (f'"""{"word " * 25}ends."""\n', "word word word word word word .."),
    ],
)
def test_the_rules_for_sentences(source, phrase):
    (finding,) = prose.findings("module.py", source)
    assert finding.phrase == phrase


@pytest.mark.parametrize(
    "source",
    [
        '"""The row that is behind its topic, and the lag that is left behind it."""\n',
        '"""The name stands for the others, and stands alone."""\n',
        'class A:\n    """Rows.\n\n    Whether there are any.\n    """\n',
        'f(hint="If the server is down, start it.")\n',
        f'"""{"word " * 24}ends."""\n',
    ],
)
def test_the_rules_spare_what_is_plain(source):
    assert prose.findings("module.py", source) == []


def test_a_sentence_of_a_document_has_a_verb():
    text = "# Title of it\n\nOf several, exactly one. One wins.\n\n- the first, of two.\n"
    (finding,) = prose.findings("docs/page.md", text)
    assert (finding.line, finding.phrase) == (3, "Of several, exactly one.")


def test_what_is_listed_may_only_shrink(tmp_path, capsys, monkeypatch):
    (tmp_path / "old").mkdir()
    file = tmp_path / "old" / "module.py"
    left = tmp_path / "left.toml"
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "PLACES", ("old",))
    monkeypatch.setattr(prose, "LEFT", left)
    left.write_text('"old/module.py" = 2\n')
    file.write_text("# in vain\n# in vain\n")
    assert prose.main([]) == 0
    file.write_text("# in vain\n# in vain\n# in vain\n")
    assert prose.main(["--shrink"]) == 1
    assert capsys.readouterr().out.count("in vain") == 3
    file.write_text("# in vain\n")
    assert prose.main([]) == 1
    assert "less is left than listed" in capsys.readouterr().out
    assert prose.main(["--shrink"]) == 0
    assert left.read_text().splitlines()[1:] == ['"old/module.py" = 1']
    file.write_text("# without effect\n")
    assert prose.main(["--shrink"]) == 0
    assert left.read_text().splitlines()[1:] == []


@pytest.mark.parametrize(
    "paragraph",
    [
        "The paths of a server's state.",
        "Types as they are written in statements.",
        "The errors that a client's own threads report.",
        "Which servers hold the store of a table's partition.",
    ],
)
def test_a_second_summary_of_a_module_is_found(paragraph):
    (finding,) = prose.findings("module.py", f'"""Files.\n\nIt has two.\n\n{paragraph}\n"""\n')
    assert (finding.line, finding.phrase) == (5, paragraph)


@pytest.mark.parametrize(
    "paragraph",
    [
        "A file that was lost is written again.",
        "It holds the paths of a server's state.",
        "Source: the paths of a server's state.",
        "``a``  the paths of a server's state.",
        "The paths of a server's state. They are short.",
        "Each type is text as it is written in statements.",
    ],
)
def test_a_later_paragraph_may_be_a_sentence_a_source_or_a_list(paragraph):
    assert prose.findings("module.py", f'"""Files.\n\n{paragraph}\n"""\n') == []
