from __future__ import annotations

from ksql.core.files import WatchedFiles
from ksql.core.timing import GrowingRest


def test_a_file_that_changes_while_it_is_read_is_read_once_more(tmp_path):
    file = tmp_path / "file"
    file.write_text("a")
    replacements = ["ccc"]

    def read(see):
        see(file)
        text = file.read_text()
        if text == "bb":
            file.write_text(replacements.pop())
        return text

    watched = WatchedFiles("texts", read, look_s=0)
    assert watched.current() == "a"
    file.write_text("bb")
    assert watched.current() == "bb"
    assert watched.current() == "ccc"


def test_rests_double_up_to_the_longest_and_begin_again_after_a_success():
    now = [0.0]
    rest = GrowingRest(5.0, 1.0, lambda: now[0])
    assert rest.over
    assert [rest.begin() for _ in range(4)] == [1, 2, 4, 5]
    over = []
    for now_s in (4.9, 5.0):
        now[0] = now_s
        over.append(rest.over)
    assert over == [False, True]
    rest.clear()
    assert (rest.begin(), rest.failures) == (1, 1)
