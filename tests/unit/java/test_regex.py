from __future__ import annotations

import pytest

from ksql.java.regex import BadRegex, compile_java, part, replace_all
from ksql.java.regex.replacement import BadReplacement


def groups_of(pattern, text):
    match = compile_java(pattern).search(text)
    return match and part(text, match, 0)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        # classes
        ("[a-z&&[^bc]]+", "bcadef", "adef"),
        ("[a-c[x-z]]+", "maxb", "axb"),
        (r"[\w&&[^\d]]+", "12ab3", "ab"),
        ("[]a]+", "x]a", "]a"),
        ("[^]a]+", "]ax", "x"),
        ("[a-]+", "-a", "-a"),
        (r"[\Qa-c\E]+", "b-ac", "-ac"),
        (r"[\Q^", "^", None),
        (r"[\x41-\x43]+", "xABCD", "ABC"),
        (r"[\s\S]", "\n", "\n"),
        ("[a&&b]", "ab", None),
        # escapes
        (r"\Qa.b\E+", "a.bbb", "a.b"),
        (r"\Q(", "(", "("),
        (r"\u0041\x{1F680}\x42", "A\U0001f680B", "A\U0001f680B"),
        (r"\0101\t\e\a\cA", "A\t\x1b\a\x01", "A\t\x1b\a\x01"),
        (r"\h+\H", "a \t\xa0b", " \t\xa0b"),
        (r"\v\V", "a\x0bb", "\x0bb"),
        (r"a\Rb", "a\r\nb", "a\r\nb"),
        (r"\d\D\s\S\W", "1a b-", "1a b-"),
        (r"\d", "٣", None),
        (r"\p{Lu}\p{Ll}+", "xÉcole", "École"),
        (r"\p{Alpha}\P{Alpha}", "éa1", "a1"),
        (r"\p{IsAlphabetic}\pN", "é1", "é1"),
        (r"\p{javaLowerCase}+", "Abc", "bc"),
        (r"\p{Punct}+", "a!?", "!?"),
        (r"\p{general_category=Nd}", "a1", "1"),
        (r"\p{LC}\p{IsL}", "aB", "aB"),
        # anchors and flags
        (".+", "ab\u2028cd", "ab"),
        ("(?s).+", "ab\ncd", "ab\ncd"),
        ("(?d).+", "ab\rc\nd", "ab\rc"),
        ("b$", "ab\r\n", "b"),
        (r"b\Z", "ab\n", "b"),
        (r"b\z", "ab\n", None),
        ("(?m)^c.$", "ab\rcd\n", "cd"),
        (r"\Ab", "ab", None),
        (r"\bb\B", "a bc", "b"),
        ("a(?i)b|c", "xC", "C"),
        ("a(?i)b|c", "A", None),
        ("a(?i:b)c", "aBC", None),
        ("a(?i:b)c", "aBc", "aBc"),
        ("(?i)a(?-i)b", "AB", None),
        ("(?i)a(?-i:b)C", "Abc", "Abc"),
        ("(?i:[a-z]+)", "ABC", "ABC"),
        ("(a(?i)b)c", "aBC", None),
        ("(?x) a b # comment\n c", "abc", "abc"),
        ("(?x)a #", "a", "a"),
        ("(?i)", "a", ""),
        # groups
        (r"(?<w>\w+) \k<w>", "a hey hey", "hey hey"),
        (r"(a)(b)\2\1", "abba", "abba"),
        (r"(a)\11", "aa1", "aa1"),
        (r"(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)\11", "abcdefghijkk", "abcdefghijkk"),
        ("(?>a+)b", "aab", "aab"),
        ("a++a", "aaa", None),
        ("a*?b{2,3}+", "aabbbb", "aabbb"),
        ("(?=a)a(?!b)", "abac", "a"),
        ("(?<=a)b(?<!c)", "ab", "b"),
        ("(?:a|b)+", "abc", "ab"),
        ("a{2}", "aaa", "aa"),
        ("", "a", ""),
    ],
)
def test_search(pattern, text, expected):
    if pattern == r"[\Q^":
        with pytest.raises(BadRegex):
            compile_java(pattern)
        return
    assert groups_of(pattern, text) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "*a",
        "[a",
        "[b-a]",
        r"\y",
        "\\",
        r"\p{InGreek}",
        "(?U)a",
        "(?y)",
        r"\k{x}",
        "(?<=a*)b",
        "a{2,1}",
        "{",
        "a{,2}",
        "a{b}",
    ],
)
def test_refused(pattern):
    with pytest.raises(BadRegex, match="Invalid regular expression pattern"):
        compile_java(pattern)


@pytest.mark.parametrize(
    ("text", "pattern", "replacement", "expected"),
    [
        ("baababaa", "(ab)+", "cat", "bacataa"),
        ("abxd", "x*", "-", "-a-b--d-"),
        ("john smith", r"(\w+) (?<l>\w+)", r"${l}, $1 \$", "smith, john $"),
        ("ab", "(a)(b)?(c)?", "[$3$2]", "[b]"),
        ("a", "(a)", "$11", "a1"),
        ("abcdefghijk", "(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)", "$11$1", "ka"),
        ("a", "a", "$0$0", "aa"),
        ("a\\", r"\\", r"\\\\", r"a\\"),
    ],
)
def test_replace(text, pattern, replacement, expected):
    assert replace_all(text, pattern, replacement) == expected


@pytest.mark.parametrize("replacement", ["$1", "$", "$x", "${x}", "${1}", "a\\"])
def test_bad_replacements(replacement):
    with pytest.raises(BadReplacement):
        replace_all("a", "a", replacement)
