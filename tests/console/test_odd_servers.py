"""The console against servers in trouble, rows in a flood, and names that look like HTML."""

from __future__ import annotations

import itertools
import json
import ssl
import time
from urllib.parse import parse_qs, quote, urlsplit

import pytest
import trustme

from ksql.cluster import Server
from ksql.core.config import Settings
from ksql.core.types import model
from server.users import Users
from tests.console.odd import at
from tests.unit.docs.memory import DocumentService
from tests.unit.formats import columns as c
from tests.unit.server.fakes import FakeService, FakeStream, rows
from tests.waits import await_true

# A browser keeps connections to a server that ends with its test; nobody closes them any more.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
MARKS = (
    "<img src=x onerror=window.hacked=1>",
    "<script>window.hacked=1</script>",
    "\"'><svg onload=window.hacked=1>",
    "javascript:window.hacked=1",
    "{{7*7}} ${7*7} &lt;b&gt; %3Cb%3E",
    "a/b?c#d&e=f",
    "zoë ☃ \u202e rtl \u0000 nul",
    "__proto__",
)
JAAS = """
KsqlServer-Props {
  org.eclipse.jetty.jaas.spi.PropertyFileLoginModule required file="%s";
};
"""


def quoted(text):
    return "`" + text.replace("`", "``") + "`"


def literal(text):
    return "'" + text.replace("'", "''") + "'"


NAMES = tuple(mark.replace("\0", "") for mark in MARKS)


@pytest.fixture
def hostile():
    """A service whose columns, values, types, statements and errors are such; sources cannot be."""
    service = DocumentService()
    for number, name in enumerate(NAMES):
        service.execute(
            f"CREATE STREAM s{number} (id STRING KEY, {quoted(name)} STRING) WITH "
            f"(KAFKA_TOPIC='t{number}', VALUE_FORMAT='JSON', PARTITIONS=1);"
            f"CREATE TYPE y{number} AS STRUCT<{quoted(name)} INT>;"
            f"CREATE STREAM r{number} AS SELECT id, {literal(name)} AS {quoted(name + '2')} "
            f"FROM s{number};"
            f"INSERT INTO s{number} (id, {quoted(name)}) VALUES ({literal(name)}, {literal(name)});"
        )
        header = ("h" + name, name.encode())
        service.services.writer.begin(f"t{number}", name.encode(), b"{}", 7, [header])
    return service


def test_no_html_gets_through(console, hostile):
    with at(hostile) as (url, _):
        opened = console(url)
        for number, name in enumerate(NAMES):
            opened.run(
                f"SELECT * FROM s{number} EMIT CHANGES LIMIT 1; DESCRIBE s{number};"
                f"EXPLAIN SELECT {quoted(name)} FROM s{number} EMIT CHANGES; "
                f"DESCRIBE {quoted(name)};"
            )
            opened.page.locator(".box.bad").wait_for()
            assert name in opened.cells()
            opened.open(f"source/S{number}")
            opened.page.get_by_role("cell", name=name, exact=True).first.wait_for()
            opened.open(f"topic/t{number}")
            opened.page.locator("tbody").get_by_role("button").first.click()
            opened.page.get_by_role("dialog").get_by_text(f"h{name} = {name}").first.wait_for()
        opened.open("catalog/types")
        opened.sees("<script>", within="tbody")
        opened.open("queries")
        opened.sees("<script>", within="tbody")
        opened.open(f"function/{NAMES[1].replace('/', '%2F')}")
        opened.page.locator(".box.bad").wait_for()
        assert opened.page.evaluate("window.hacked") is None


def test_the_last_records_of_many_partitions_fit_into_one_answer(console):
    """An answer has 1,000 records at most, the oldest first: the newest must not be left out."""
    requests = []
    partitions = [{"partition": n, "begin": 0, "end": 90, "next": 90} for n in range(64)]
    browsed = {"keyFormats": [], "valueFormats": [], "records": [], "partitions": partitions}

    def answer(route):
        requests.append(parse_qs(urlsplit(route.request.url).query))
        route.fulfill(json=browsed)

    with at(FakeService()) as (url, _):
        opened = console(url)
        opened.page.route("**/topics/s/records?*", answer)
        opened.open("topic/s")
        opened.sees("partition 63: 0 to 90")
        opened.page.get_by_label("From").select_option("end")
        for partition in ("", "3"):
            opened.page.get_by_label("Partition").fill(partition)
            # The browser's events arrive only while one of its calls waits.
            with opened.page.expect_response("**/topics/s/records?*offset=*"):
                opened.press("Show")
    last = [query for query in requests if "offset" in query]
    assert [query["offset"] for query in last] == [["-15"], ["-50"]]
    assert [query["limit"] for query in last] == [["1000"]] * 2


@pytest.mark.parametrize("page", ["query", "source", "function", "topic"])
def test_an_address_runs_no_statements(console, page):
    """A link of somebody else's opens a page, and does nothing more."""
    service = DocumentService()
    service.execute(
        "CREATE STREAM s (id STRING KEY, n INT) "
        "WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    begin = "SELECT * FROM s EMIT CHANGES" if page == "query" else "s"
    for end in (";", "`;", "' ;", "``;"):
        with at(service) as (url, _):
            opened = console(url, f"{page}/{quote(f'{begin}{end} DROP STREAM s; --')}")
            opened.page.locator(".box.bad").wait_for()
            assert "S" in service.services.engine.catalog.sources


class Flood(FakeService):
    """A server whose push query gives rows as fast as they are taken."""

    def query(self, *_request, **_more):
        def batches():
            for number in itertools.count(0, 1_000):
                yield rows(*((n, f"value {n}") for n in range(number, number + 1_000)))
                time.sleep(0.01)

        columns = (c.value("N", model.BIGINT), c.value("TEXT", model.STRING))
        return FakeStream(batches(), columns=columns)


def test_a_flood_of_rows_leaves_the_page_usable(console):
    with at(Flood()) as (url, _):
        opened = console(url)
        opened.run("SELECT * FROM s EMIT CHANGES;")
        opened.status("left out")
        opened.page.get_by_role("tab", name="Tab 1").wait_for()
        opened.press("New tab")
        opened.write("SELECT 1;")
        opened.page.get_by_role("tab", name="Tab 1").click()
        opened.press("Stop", within=".rows")
        opened.status("stopped")
        kept = json.loads(opened.export("JSON"))
        assert len(kept) == 10_000
        assert kept[-1]["N"] - kept[0]["N"] == 9_999


class Separators(FakeService):
    """A server whose one row is full of the separators of rows."""

    def query(self, *_request, **_more):
        value = ",]" * 300_000
        columns = (c.value("TEXT", model.STRING),)
        return FakeStream(iter([rows((value,)), rows(("after",))]), columns=columns)


def test_a_value_of_separators_does_not_stop_the_page(console):
    with at(Separators()) as (url, _):
        opened = console(url)
        opened.run("SELECT * FROM s EMIT CHANGES;")
        opened.status("2 rows")
        assert opened.cells()[1] == "after"


def test_a_browser_without_room_still_runs_statements(console):
    with at(DocumentService()) as (url, _):
        opened = console(url)
        fill = "for (let size = 1 << 22; size; size >>= 1) try { while (true) "
        fill += "localStorage.setItem(`x${Math.random()}`, 'x'.repeat(size)); } catch {}"
        opened.page.evaluate(f"() => {{ {fill} }}")
        opened.run("SHOW STREAMS; -- " + "y" * 500)
        opened.page.locator(".result").get_by_text("None.").wait_for()
        opened.page.get_by_text("This browser has no room").wait_for()
        opened.run("SHOW TABLES;")
        opened.page.locator(".result").get_by_text("SHOW TABLES;").first.wait_for()
        opened.page.get_by_role("button", name="Run", exact=True).click()


def test_a_server_that_stops_and_comes_back(console):
    with at(DocumentService()) as (url, _):
        opened = console(url, "cluster")
        opened.sees("All is well")
    opened.page.get_by_text("The server does not answer. The console continues").wait_for()
    with at(DocumentService(), port=int(url.rsplit(":", 1)[1])):
        opened.page.get_by_text("All is well").wait_for()
        opened.run("SHOW STREAMS;")
        opened.page.locator(".result").get_by_text("None.").wait_for()


@pytest.fixture
def users(tmp_path):
    (tmp_path / "users").write_text("ada: secret, admin\n", "utf-8")
    (tmp_path / "jaas").write_text(JAAS % (tmp_path / "users"), "utf-8")
    configuration = {
        "authentication.method": "BASIC",
        "authentication.realm": "KsqlServer-Props",
        "java.security.auth.login.config": str(tmp_path / "jaas"),
    }
    return Users.of(Settings(configuration))


def test_a_server_with_users_and_a_certificate_of_its_own(console, users):
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(tls)
    ada = {"username": "ada", "password": "secret"}
    with at(DocumentService(), tls=tls, users=users) as (url, _):
        opened = console(url, http_credentials=ada, ignore_https_errors=True)
        opened.run("SHOW STREAMS;")
        opened.page.locator(".result").get_by_text("None.").wait_for()
        stranger = opened.context.browser.new_context(ignore_https_errors=True)
        assert stranger.request.get(f"{url}/console").status == 401
        stranger.close()


class Standby(FakeService):
    """A server that follows another one, which has fallen silent."""

    def metrics(self, accept, unready, requests):
        return b"ksql_leader 0.0\nksql_members 1.0\n", "text/plain; charset=utf-8"


def test_a_standby_says_that_it_does_not_run_the_queries(console):
    with at(Standby(other=Server("127.0.0.1", 1))) as (url, _):
        opened = console(url, "cluster")
        opened.sees("follows")
        opened.open("queries")
        opened.page.locator(".box.bad").wait_for()
        opened.sees("Rates, lags and charts are missing")


class Leading(FakeService):
    """The server that leads; it knows the name by which others reach it."""

    def metrics(self, accept, unready, requests):
        host = self.host
        return f'ksql_leader 1.0\nksql_server_info{{host="{host}"}} 1.0\n'.encode(), "text/plain"


def test_a_standby_names_the_leader_and_shows_its_numbers(console):
    far = Leading()
    with at(far) as (leader, _):
        far.host = leader.removeprefix("http://")
        host, port = far.host.split(":")
        with at(Standby(other=Server(host, int(port)))) as (url, _):
            opened = console(url, "cluster")
            link = opened.page.get_by_role("link", name=far.host)
            link.wait_for()
            assert link.get_attribute("href") == f"{leader}/console#/cluster"
            opened.open("lineage")
            opened.sees("Rates, lags and charts are passed on from there")


def test_many_queries_are_drawn(console):
    service = DocumentService()
    service.execute(
        "CREATE STREAM s (id STRING KEY, n INT) "
        "WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    for number in range(200):
        source = "s" if number % 4 == 0 else f"r{number - 1}"
        service.execute(f"CREATE STREAM r{number} AS SELECT * FROM {source};")
    with at(service) as (url, _):
        opened = console(url, "lineage")
        await_true("drawn", lambda: opened.page.locator(".graph .query").count() == 200)
