from __future__ import annotations

import dataclasses
import datetime as dt
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ksql.core.types.times import civil, epoch_day
from ksql.java.timeformat import (
    Moment,
    date_moment,
    formatter,
    javatime,
    parse_date,
    parse_day,
    parse_time,
    parse_timestamp,
    system_zone,
    time_moment,
    timestamp_moment,
    timestamp_parser,
    zone_of,
    zones,
)
from ksql.java.timeformat.errors import BadPattern, BadText, NotInMoment, OutOfRange, UnknownZone
from ksql.java.timeformat.fields import week_of_year
from tests.examples import examples

STAMP = 1526075913123  # Friday 2018-05-11T21:58:33.123Z
LA, LONDON, UTC = zone_of("America/Los_Angeles"), zone_of("Europe/London"), zone_of("UTC")


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        ("y u yy yyy yyyyy", "2018 2018 18 2018 02018"),
        ("M MM MMM MMMM MMMMM L", "5 05 May May M 5"),
        ("d dd D DDD", "11 11 131 131"),
        ("E EEE EEEE EEEEE e eee c", "Fri Fri Friday F 6 Fri 6"),
        ("Q QQ QQQ QQQQ", "2 02 Q2 2nd quarter"),
        ("G GGGG GGGGG", "AD Anno Domini A"),
        ("Y-w W F", "2018-19 2 2"),
        ("h K k H a", "2 2 14 14 PM"),
        ("mm s SSS SSSSSSSSS n A N", "58 33 123 123000000 123000000 53913123 53913123000000"),
        ("X XX XXX XXXX XXXXX", "-07 -0700 -07:00 -0700 -07:00"),
        ("x Z ZZZZ ZZZZZ O OOOO", "-07 -0700 GMT-07:00 -07:00 GMT-7 GMT-07:00"),
        ("z zzzz VV v", "PDT Pacific Daylight Time America/Los_Angeles PDT"),
        ("'at' h 'o''clock' ''", "at 2 o'clock '"),
        ("ppppd|[HH]", "  11|14"),
    ],
)
def test_letters(pattern, shown):
    assert formatter(pattern).show(timestamp_moment(STAMP, LA)) == shown


def test_widths_and_signs():
    far = date_moment(epoch_day(12345, 1, 1))
    assert formatter("yyyy").show(far) == "+12345"
    assert formatter("y").show(far) == "12345"
    before = date_moment(epoch_day(-43, 3, 15))
    assert formatter("y G u uuuu").show(before) == "44 BC -43 -0043"
    with pytest.raises(OutOfRange):
        formatter("A").show(Moment(millis=-1))
    with pytest.raises(OutOfRange):
        formatter("ppMMMM").show(date_moment(0))


def test_midnight_and_noon():
    show = formatter("h K k H a").show
    assert show(time_moment(0)) == "12 0 24 0 AM"
    assert show(time_moment(43_200_000)) == "12 0 12 12 PM"


def test_zero_offsets():
    show = formatter("X XXX x xxx Z O").show
    assert show(timestamp_moment(0, UTC)) == "Z Z +00 +00:00 +0000 GMT"
    half = timestamp_moment(0, zone_of("+05:30"))
    assert formatter("X x O OOOO").show(half) == "+0530 +0530 GMT+5:30 GMT+05:30"
    odd = timestamp_moment(0, zone_of("+05:30:15"))
    assert formatter("XXX XXXX XXXXX O").show(odd) == "+05:30 +053015 +05:30:15 GMT+5:30:15"


def test_fixed_zones_have_names_too():
    assert (
        formatter("zzzz z VV").show(timestamp_moment(0, UTC))
        == "Coordinated Universal Time UTC UTC"
    )


@pytest.mark.parametrize(
    "pattern",
    [
        "T",
        "b",
        "MMMMMM",
        "{",
        "[",
        "yyyy]",
        "'x",
        "p",
        "ddd",
        "SSSSSSSSSS",
        "ZZZZZZ",
        "V",
        "vv",
        "DDDD",
    ],
)
def test_bad_patterns(pattern):
    if pattern == "[":  # an open section ends with the pattern
        assert formatter("[").show(date_moment(0)) == ""
        return
    with pytest.raises(BadPattern):
        formatter(pattern)


@pytest.mark.parametrize("pattern", ["HH", "VV", "XXX"])
def test_dates_have_no_time(pattern):
    with pytest.raises(NotInMoment):
        formatter(pattern).show(date_moment(0))
    assert formatter(f"d[{pattern}]").show(date_moment(0)) == "1"


def test_times_have_no_date():
    with pytest.raises(NotInMoment):
        formatter("d").show(time_moment(0))


@pytest.mark.parametrize(
    ("pattern", "text", "iso"),
    [
        ("yyyyMMddHHmmssSSS", "20180511215833123", "2018-05-11T21:58:33.123"),
        ("yyyy-MM-dd'T'HH:mm:ssX", "2018-05-11T21:58:33Z", "2018-05-11T21:58:33"),
        ("yyyy-MM-dd HH:mm:ss Z", "2018-05-11 21:58:33 +0200", "2018-05-11T19:58:33"),
        ("yyyy-MM-dd HH:mm VV", "2018-05-11 21:58 europe/london", "2018-05-11T20:58:00"),
        ("yyyy-MM-dd HH:mm zzzz", "2018-05-11 10:00 Pacific Daylight Time", "2018-05-11T17:00:00"),
        ("yyyy-MM-dd HH:mm O", "2018-05-11 10:00 GMT+2", "2018-05-11T08:00:00"),
        ("MMM d, yyyy h:mm a", "may 3, 2019 3:07 pm", "2019-05-03T15:07:00"),
        ("EEEE dd MMMM yy", "Friday 11 May 18", "2018-05-11T00:00:00"),
        ("dd/MM/uuuu", "11/05/2018", "2018-05-11T00:00:00"),
        ("yyyy DDD", "2018 131", "2018-05-11T00:00:00"),
        ("DDD", "131", "1970-05-11T00:00:00"),
        ("MM-dd", "02-30", "1970-02-28T00:00:00"),
        ("yyyy-MM-dd", "2019-02-31", "2019-02-28T00:00:00"),
        ("HH:mm", "24:00", "1970-01-02T00:00:00"),
        ("k:mm", "24:00", "1970-01-01T00:00:00"),
        ("hh:mm", "12:30", "1970-01-01T00:30:00"),
        ("a", "PM", "1970-01-01T12:00:00"),
        ("EEE", "Mon", "1969-12-29T00:00:00"),
        ("YYYY-ww-E", "2018-19-Fri", "2018-05-11T00:00:00"),
        ("yyyy G", "0044 BC", "-0043-01-01T00:00:00"),
        ("yyyy[-MM[-dd]]", "2018-05", "2018-05-01T00:00:00"),
        ("yyyy-MM-dd HH:mm:ss.n", "2018-05-11 00:00:00.5000000", "2018-05-11T00:00:00.005"),
        ("A", "1500", "1970-01-01T00:00:01.500"),
        ("N", "1500000000", "1970-01-01T00:00:01.500"),
        ("ppppd MM", "  11 05", "1970-05-11T00:00:00"),
        ("yyyy", "+12345", "+12345-01-01T00:00:00"),
        ("Q", "2", "1970-01-01T00:00:00"),
    ],
)
def test_parse_timestamp(pattern, text, iso):
    timestamp = parse_timestamp(pattern, text)
    day, millis = divmod(timestamp, 86_400_000)
    year, month, dom = civil(day)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    clock = formatter("HH:mm:ss").show(time_moment(millis))
    shown = f"{sign}{abs(year):04}-{month:02}-{dom:02}T{clock}"
    assert shown + (f".{millis % 1000:03}" if millis % 1000 else "") == iso


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2018-05-11 "),
        ("yyyy-MM-dd", "18-05-11"),
        ("yyyy-MM-dd", "2018-13-11"),
        ("yyyy-MM-dd", "2018-00-11"),
        ("yyyy", "12345"),
        ("HH:mm", "24:01"),
        ("HH:mm", "25:00"),
        ("EEEE yyyy-MM-dd", "Monday 2018-05-11"),
        ("MM MM", "01 02"),
        ("DDD", "366"),
        ("yyyy DDD", "2018 366"),
        ("X", "+19"),
        ("VV", "Mars/Base"),
        ("VV", "+19:00"),
        ("Hm", "111"),
    ],
)
def test_texts_that_do_not_fit(pattern, text):
    with pytest.raises(BadText, match="Failed to parse timestamp"):
        parse_timestamp(pattern, text)


def test_leap_day_by_number():
    assert parse_timestamp("yyyy DDD", "2020 366") == 1609372800000


def test_zone_of_the_text_wins():
    assert parse_timestamp("HH X", "10 +02", LA) == 8 * 3_600_000
    assert parse_timestamp("HH", "10", zone_of("+02:00")) == 8 * 3_600_000


def test_clock_changes():
    parse = timestamp_parser("yyyy-MM-dd HH:mm", LONDON)
    gap = parse("2018-03-25 01:30")  # does not exist: read as 02:30 BST
    assert formatter("HH:mm z").show(timestamp_moment(gap, LONDON)) == "02:30 BST"
    twice = parse("2018-10-28 01:30")  # the first of the two
    assert formatter("HH:mm z").show(timestamp_moment(twice, LONDON)) == "01:30 BST"


def test_pattern_is_checked_before_the_text():
    with pytest.raises(BadPattern):
        timestamp_parser("yyyy-T")


@pytest.mark.parametrize(
    ("pattern", "text", "millis"),
    [
        ("HHmmss", "010203", 3_723_000),
        ("H:m", "1:2", 3_720_000),
        ("h a", "12 am", 0),
        ("HH", "24", 0),
    ],
)
def test_parse_time(pattern, text, millis):
    assert parse_time(pattern, text) == millis


@pytest.mark.parametrize(
    ("pattern", "text"), [("dd HH", "01 10"), ("mm", "10"), ("hh", "10"), ("HH mm", "24 01")]
)
def test_times_that_do_not_fit(pattern, text):
    with pytest.raises(BadText):
        parse_time(pattern, text)


def test_parse_day_needs_a_whole_date():
    assert parse_day("dd.MM.yyyy", "02.01.1970") == 1
    with pytest.raises(BadText):
        parse_day("MM.yyyy", "01.1970")
    with pytest.raises(BadText):
        parse_day("yyyy DDD", "2019 366")


@pytest.mark.parametrize(
    ("pattern", "text", "day"),
    [
        ("yyyyMMdd", "20180511", 17662),
        ("yyyy-MM-dd", "2018-05-11 and more", 17662),
        ("yyyy-MM-dd", "2018-04-41", 17662),
        ("yyyy-MM-dd", "2017-17-11", 17662),
        ("yyyy-M-d", "2018-5-11", 17662),
        ("dd MMMM yyyy", "11 MAY 2018", 17662),
        ("yyyy D", "2018 131", 17662),
        ("yyyy w u", "2018 19 5", 17662),
        ("EEE MMM yyyy", "Fri May 2018", 17655),
        ("yyyy-MM-dd HH:mm Z", "2018-05-11 02:00 +0200", 17662),
        ("yyyy-MM-dd HH:mm z", "2018-05-11 00:00 UTC", 17662),
        ("yyyy-MM-dd HH:mm z", "2018-05-11 01:00 bst", 17662),
        ("yyyy-MM-dd hh a", "2018-05-10 12 AM", 17661),
        ("yyyy-MM-dd kk", "2018-05-10 24", 17661),
        ("G yyyy", "BC 0001", epoch_day(0, 1, 1)),
        ("", "", 0),
    ],
)
def test_parse_date(pattern, text, day):
    assert parse_date(pattern, text) == day


def test_short_years_are_near():
    this_year = dt.datetime.now(dt.UTC).year
    assert abs(civil(parse_date("yy", f"{this_year % 100:02}"))[0] - this_year) == 0
    assert civil(parse_date("yy", f"{(this_year + 30) % 100:02}"))[0] == this_year - 70


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("Z", "+1999"), ("yyyy-MM-dd", "x"), ("yyyy HH", "2018 10"), ("yyyy-MM-dd", "2018-05")],
)
def test_dates_that_do_not_fit(pattern, text):
    with pytest.raises(BadText):
        parse_date(pattern, text)


def test_letters_of_simple_date_format():
    with pytest.raises(BadPattern):
        parse_date("QQ", "01")


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("Z", 0),
        ("UTC", 0),
        ("+2", 7200),
        ("-0230", -9000),
        ("UTC+01:00", 3600),
        ("+01:02:03", 3723),
        ("GMT0", 0),
    ],
)
def test_zone_ids(name, offset):
    assert zone_of(name).offset_s(0) == offset


@pytest.mark.parametrize(
    "name", ["", "PDT", "+19", "+01:60", "utc+1", "../etc", "EST", "localtime", "posix/UTC"]
)
def test_unknown_zones(name):
    with pytest.raises(UnknownZone):
        zone_of(name)


def test_zone_names():
    assert zone_of("UTC+0").name == "UTCZ" or zone_of("UTC+0").name.startswith("UTC")
    assert LA.abbreviation(0) == "PST"
    assert zone_of("+01:00").abbreviation(0) == "+01:00"


def test_system_zone_follows_the_environment(monkeypatch):
    monkeypatch.setenv("TZ", ":Asia/Tokyo")
    assert system_zone.__wrapped__().name == "Asia/Tokyo"
    monkeypatch.setattr(zones, "_system_names", lambda: ["No/Where"])
    assert system_zone.__wrapped__().region is None


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(-62_135_596_800_000, 253_402_300_799_000))
def test_format_and_parse_are_inverse(millis):
    pattern = "uuuu-MM-dd HH:mm:ss.SSS"
    shown = formatter(pattern).show(timestamp_moment(millis, UTC))
    assert parse_timestamp(pattern, shown) == millis
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=millis)
    assert shown[5:] == f"{moment:%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}"


FIELDS = ["yyyy", "uuuu", "MM", "dd", "HH", "mm", "ss", "SSS", "SS", "S", "SSSSSS", "-", "'T'", " "]


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.sampled_from(FIELDS), min_size=2, max_size=9),
    st.integers(-62_135_596_800_000, 253_402_300_799_000),
    st.integers(0, 5),
)
def test_the_short_cut_gives_the_same(parts, millis, spoiled):
    pattern = "".join(parts)
    assume(all(a[0] != b[0] for a, b in pairwise(parts)))
    text = formatter(pattern).show(timestamp_moment(millis, UTC))
    text = text.replace("2", "9") if spoiled == 0 else text

    def outcome():
        try:
            return parse_timestamp(pattern, text, LONDON)
        except BadText:
            return "bad"

    quick = outcome()
    with pytest.MonkeyPatch.context() as patch:
        slow = dataclasses.replace(formatter(pattern), direct=None)
        patch.setattr(javatime, "formatter", lambda _: slow)
        assert outcome() == quick


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(-700_000, 2_000_000))
def test_calendar(day):
    date = dt.date(1970, 1, 1) + dt.timedelta(days=day)
    assert epoch_day(date.year, date.month, date.day) == day
    assert week_of_year(day, 1, 4) == tuple(date.isocalendar())[:2]
    parts = formatter("D e").show(date_moment(day)).split()
    assert parts == [str(date.timetuple().tm_yday), str(date.isoweekday() % 7 + 1)]
